// Every distinct token of the prompt and the output, once: logit' = logit / penalty where positive,
// logit * penalty where negative. Keskar et al. 2019, "CTRL", section 4.1.
#include "sampling/candidates.h"
#include "sampling/history.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr Param kParams[] = {
    {.name = "repetition_penalty",
     .neutral = 1,
     .min = 0,
     .max = 10,
     .min_excluded = true,
     .help = "above 1: tokens of the prompt and the output become less likely"}};

void apply(Candidates& c, const SamplerInput& in) {
  c.edit(in.history, [penalty = in.values[0]](double logit, const SamplerState::Entry&) {
    return logit > 0 ? logit / penalty : logit * penalty;
  });
}

}  // namespace

extern const SamplerDef kSampler_repetition;
const SamplerDef kSampler_repetition{.name = "repetition",
                                     .order = 20,
                                     .help = "scale down the logits of tokens seen before",
                                     .params = kParams,
                                     .uses_history = true,
                                     .beams = true,
                                     .apply = apply};

}  // namespace vitrine
