#include "tokenizer/token_words.h"

#include <algorithm>

namespace vitrine {
namespace {

Status check(std::span<const std::string> strings, std::size_t most, std::size_t most_bytes) {
  if (strings.size() > most)
    return make_error(ErrorCode::kTooLarge, "found {} strings, allowed up to {}", strings.size(),
                      most);
  for (const std::string& s : strings)
    if (s.empty() || s.size() > most_bytes)
      return make_error(ErrorCode::kInvalid, "found a string of {} bytes, allowed 1 to {}",
                        s.size(), most_bytes);
  return Ok{};
}

}  // namespace

std::span<const std::string> default_breakers() {
  static const std::string kBreakers[] = {"\n", ":", "\"", "*"};
  return kBreakers;
}

std::vector<std::string> token_texts(const Tokenizer& tokenizer) {
  std::vector<std::string> out(static_cast<std::size_t>(tokenizer.vocab_size()));
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    if (!tokenizer.is_special(id)) out[static_cast<std::size_t>(id)] = tokenizer.piece(id);
  return out;
}

Result<std::vector<std::int32_t>> tokens_with(const Tokenizer& tokenizer,
                                              std::span<const std::string> strings) {
  VT_RETURN_IF_ERROR(check(strings, kMaxBreakers, kMaxBreakerBytes));
  std::vector<std::int32_t> out;
  for (std::int32_t id = 0; id < tokenizer.vocab_size() && !strings.empty(); ++id) {
    const std::string piece = tokenizer.piece(id);
    const auto has = [&](const std::string& s) { return piece.find(s) != std::string::npos; };
    if (std::any_of(strings.begin(), strings.end(), has)) out.push_back(id);
  }
  return out;
}

Result<std::vector<std::vector<std::int32_t>>> tokens_of_words(const Tokenizer& tokenizer,
                                                               std::span<const std::string> words) {
  VT_RETURN_IF_ERROR(check(words, kMaxBadWords, kMaxBadWordBytes));
  std::vector<std::vector<std::int32_t>> out;
  for (const std::string& word : words) {
    const std::string bare = word.substr(std::min(word.find_first_not_of(' '), word.size()));
    if (bare.empty())
      return make_error(ErrorCode::kInvalid, "found a string of spaces, allowed are words");
    const auto begins = tokenizer.encode(bare, {.add_special = false});
    const auto follows = tokenizer.encode(" " + bare, {.add_special = false});
    if (!begins.empty()) out.push_back(begins);
    // Often shorter than the other: a word behind a space tends to be one token.
    if (follows != begins && !follows.empty()) out.push_back(follows);
  }
  return out;
}

}  // namespace vitrine
