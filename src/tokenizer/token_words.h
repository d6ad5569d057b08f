// Strings that samplers want as tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {

// Where the copies that dry looks for end, if nobody says otherwise.
std::span<const std::string> default_breakers();
inline constexpr std::size_t kMaxBreakers = 16, kMaxBreakerBytes = 40;

// By id; empty for special tokens, which are no text.
std::vector<std::string> token_texts(const Tokenizer& tokenizer);

// Every token with one of these strings in its text. Refuses more than kMaxBreakers, empty ones and
// longer ones than kMaxBreakerBytes. Looks at the whole vocabulary.
Result<std::vector<std::int32_t>> tokens_with(const Tokenizer& tokenizer,
                                              std::span<const std::string> strings);

inline constexpr std::size_t kMaxBadWords = 256, kMaxBadWordBytes = 256;

// The tokens of words, each as it begins a text and, where this gives another token, after a space
// (as vLLM has it). Refuses more than kMaxBadWords, empty ones and longer ones than
// kMaxBadWordBytes.
Result<std::vector<std::vector<std::int32_t>>> tokens_of_words(const Tokenizer& tokenizer,
                                                               std::span<const std::string> words);

}  // namespace vitrine
