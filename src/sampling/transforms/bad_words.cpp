// Drop the last token of each bad word where the output ends with the rest of it (vLLM's bad_words,
// Hugging Face's bad_words_ids). A word of one token is always dropped.
#include <algorithm>

#include "sampling/candidates.h"
#include "sampling/history.h"
#include "sampling/sampler.h"
#include "sampling/token_lists.h"

namespace vitrine {
namespace {

bool active(std::span<const double>, const TokenLists& lists) {
  return lists.bad_words && !lists.bad_words->empty();
}

bool said(std::span<const std::int32_t> output, std::span<const std::int32_t> rest) {
  return output.size() >= rest.size() &&
         std::equal(rest.begin(), rest.end(),
                    output.end() - static_cast<std::ptrdiff_t>(rest.size()));
}

void apply(Candidates& c, const SamplerInput& in) {
  c.drop([&](auto ban) {
    for (const std::span<const std::int32_t> word : *in.lists.bad_words)
      if (said(in.history.output(), word.first(word.size() - 1))) ban(word.back());
  });
}

}  // namespace

extern const SamplerDef kSampler_bad_words;
const SamplerDef kSampler_bad_words{.name = "bad_words",
                                    .order = 14,
                                    .help = "keep chosen words from being said",
                                    .params = {},
                                    .uses_tokens = true,
                                    .always_runs = true,
                                    .beams = true,
                                    .active = active,
                                    .apply = apply};

}  // namespace vitrine
