// Keep the tokens of the request's list (vLLM's allowed_token_ids). Where a constraint of the text
// allows none of them, the constraint goes first and nothing is dropped.
#include <algorithm>

#include "sampling/candidates.h"
#include "sampling/sampler.h"
#include "sampling/token_lists.h"

namespace vitrine {
namespace {

bool active(std::span<const double>, const TokenLists& lists) {
  return lists.allowed && !lists.allowed->empty();
}

void apply(Candidates& c, const SamplerInput& in) {
  const auto& allowed = *in.lists.allowed;
  c.keep_if(
      [&](const Candidate& x) { return std::binary_search(allowed.begin(), allowed.end(), x.id); });
}

}  // namespace

extern const SamplerDef kSampler_allowed_token_ids;
const SamplerDef kSampler_allowed_token_ids{.name = "allowed_token_ids",
                                            .order = 12,
                                            .help = "keep chosen tokens only",
                                            .params = {},
                                            .always_runs = true,
                                            .beams = true,
                                            .active = active,
                                            .apply = apply};

}  // namespace vitrine
