// Drop every token that would complete an n-gram of the prompt and the output a second time. Hugging
// Face's no_repeat_ngram_size; Paulus et al. 2017, "A Deep Reinforced Model for Abstractive
// Summarization", section 2.5.
//
// The last n - 1 tokens are looked for in all before them by Knuth, Morris and Pratt: linear in the
// length of the sequence.
#include <array>

#include "sampling/candidates.h"
#include "sampling/history.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr std::size_t kMostTokens = 64;  // of an n-gram

constexpr Param kParams[] = {
    {.name = "no_repeat_ngram_size",
     .neutral = 0,
     .min = 0,
     .max = kMostTokens,
     .integer = true,
     .help = "no sequence of this many tokens occurs twice, prompt included; 0: off"}};

// Calls f(token) for every token that follows an earlier copy of the last `size` tokens.
template <typename F>
void each_follower(std::span<const std::int32_t> tokens, std::size_t size, F f) {
  if (tokens.size() <= size) return;
  const auto pattern = tokens.last(size);
  // How much of the pattern's beginning the tokens up to here end with, when the next one is `token`.
  std::array<std::size_t, kMostTokens + 1> shorter{};  // by matched tokens: the next shorter match
  const auto advance = [&](std::size_t matched, std::int32_t token) {
    while (matched > 0 && (matched == size || pattern[matched] != token))
      matched = shorter[matched];
    return matched < size && pattern[matched] == token ? matched + 1 : 0;
  };
  for (std::size_t i = 0, matched = 0; i < size; ++i) {
    if (i > 0) matched = advance(matched, pattern[i]);
    shorter[i + 1] = matched;
  }
  std::size_t matched = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (matched == size) f(tokens[i]);
    matched = advance(matched, tokens[i]);
  }
}

void apply(Candidates& c, const SamplerInput& in) {
  c.drop([&](auto ban) {
    each_follower(in.history.tokens(), static_cast<std::size_t>(in.values[0]) - 1, ban);
  });
}

}  // namespace

extern const SamplerDef kSampler_no_repeat_ngram;
const SamplerDef kSampler_no_repeat_ngram{.name = "no_repeat_ngram",
                                          .order = 16,
                                          .help = "no n-gram comes twice",
                                          .params = kParams,
                                          .uses_tokens = true,
                                          .beams = true,
                                          .apply = apply};

}  // namespace vitrine
