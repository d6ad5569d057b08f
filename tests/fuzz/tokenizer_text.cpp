// A text, for one tokenizer of each kind.
#include <array>
#include <fstream>
#include <iterator>
#include <memory>

#include "base/utf8.h"
#include "fuzz/fuzz.h"
#include "tokenizer/explanation.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"

using namespace vitrine;

namespace {

std::unique_ptr<Tokenizer> load(const char* kind) {
  std::ifstream file(fmt::format("{}/tokenizer/{}/tokenizer.json", VT_FIXTURES, kind));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  auto made = Tokenizer::from_json(text, "");
  VT_CHECK(made.ok(), "{}", made.error().message);
  return std::move(*made);
}

}  // namespace

void fuzz_one(fuzz::Input input) {
  static const std::array kAll{load("byte_bpe"), load("spm_bpe"), load("unigram"),
                               load("wordpiece")};
  const std::uint8_t choice = input.take();
  const Tokenizer& tokenizer = *kAll[choice % kAll.size()];
  const std::string_view text = input.text();
  EncodeOptions options{.add_special = (choice & 4) != 0, .parse_special = (choice & 8) != 0};
  auto ids = tokenizer.encode(text, options);
  for (std::int32_t id : ids) VT_CHECK(id >= 0 && id < tokenizer.vocab_size());
  const bool skip = (choice & 16) != 0;
  std::string whole = tokenizer.decode(ids, skip), streamed;
  StreamDecoder stream(tokenizer, skip);
  for (std::int32_t id : ids) streamed += stream.push(id);
  streamed += stream.finish();
  VT_CHECK(streamed == whole, "streamed '{}', whole '{}'", streamed, whole);
  VT_CHECK(utf8_valid(whole));
  if (auto told = tokenizer.explain(text, options); told.ok()) VT_CHECK(told->ids() == ids);
  // The same text once more, as words of a caller that never become special tokens.
  ByteSpan words[] = {{text.size() / 3, text.size()}};
  ids = tokenizer.encode(text, options, words);
  for (std::int32_t id : ids) VT_CHECK(id >= 0 && id < tokenizer.vocab_size());
  if (auto told = tokenizer.place(text, options, words); told.ok()) VT_CHECK(told->ids() == ids);
}
