// Keep the tokens with a probability of at least epsilon, and the best. Hewitt, Manning, Liang 2022,
// "Truncation Sampling as Language Model Desmoothing".
#include "sampling/candidates.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr Param kParams[] = {{.name = "epsilon_cutoff",
                              .neutral = 0,
                              .min = 0,
                              .max = 1,
                              .help = "drop tokens below this probability; 0: off"}};

void apply(Candidates& c, const SamplerInput& in) { c.keep_share(in.values[0]); }

}  // namespace

extern const SamplerDef kSampler_epsilon_cutoff;
const SamplerDef kSampler_epsilon_cutoff{.name = "epsilon_cutoff",
                                         .order = 90,
                                         .help = "drop tokens of little probability",
                                         .params = kParams,
                                         .cuts = true,
                                         .apply = apply};

}  // namespace vitrine
