// A tokenizer.json, and a text for it.
#include "fuzz/fuzz.h"
#include "tokenizer/explanation.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"

using namespace vitrine;

void fuzz_one(fuzz::Input input) {
  auto tokenizer =
      Tokenizer::from_json(input.text(), R"({"bos_token":"<s>","eos_token":{"content":"</s>"}})");
  if (!tokenizer.ok()) return;
  constexpr const char* kText = "A text, <s>[CLS] 12\n\n é漢 aaaab";
  auto ids = (*tokenizer)->encode(kText, {.parse_special = true});
  if (auto told = (*tokenizer)->explain(kText, {.parse_special = true}); told.ok())
    VT_CHECK(told->ids() == ids);
  for (std::int32_t id : ids) VT_CHECK(id >= 0 && id < (*tokenizer)->vocab_size());
  std::string whole = (*tokenizer)->decode(ids), streamed;
  StreamDecoder stream(**tokenizer);
  for (std::int32_t id : ids) streamed += stream.push(id);
  streamed += stream.finish();
  VT_CHECK(streamed == whole, "streamed '{}', whole '{}'", streamed, whole);
  for (std::int32_t id = 0; id < std::min((*tokenizer)->vocab_size(), 64); ++id)
    (void)(*tokenizer)->piece(id);
}
