// The JSON files of a Hugging Face folder: config.json, generation_config.json, the index of shards,
// sentence-transformers' pooling.
#include <deque>

#include "formats/generation.h"
#include "formats/hf_config.h"
#include "formats/hf_index.h"
#include "fuzz/fuzz.h"

using namespace vitrine;

void fuzz_one(fuzz::Input input) {
  if (input.take() % 4 == 0) {
    auto shards = parse_shard_index(input.text(), "i");
    if (!shards.ok()) return;
    for (const std::string& file : shards->files)
      VT_CHECK(file.find_first_of(std::string_view("/\0", 2)) == file.npos && file != "..");
    for (const auto& [name, file] : shards->tensors) VT_CHECK(file < shards->files.size());
    return;
  }
  std::deque<std::string> texts;
  auto meta = parse_hf_config(input.text(), "c", texts);
  if (!meta.ok()) return;
  (void)generation_from_hf(*meta, *meta);
  (void)pooling_from_hf(*meta);
  for (const auto& [key, value] : meta->all()) {
    (void)meta->get_strings(key);
    (void)meta->get_ints(key);
    (void)meta->get_floats(key);
    (void)meta->get_string(key);
  }
}
