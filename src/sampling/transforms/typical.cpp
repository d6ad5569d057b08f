// Keep the tokens whose surprise is nearest to the expected one (the entropy), until their
// probabilities sum to typical_p; the one that crosses it is kept. The best token may go. Meister
// et al. 2022, "Locally Typical Sampling". The surprise of the best token cancels from |surprise -
// entropy|, which leaves distances from the mean in nats below the best.
#include "sampling/candidates.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr Param kParams[] = {
    {.name = "typical_p",
     .neutral = 1,
     .min = 0,
     .max = 1,
     .min_excluded = true,
     .help = "keep this share, of the tokens nearest to the expected surprise; 1: off"}};

void apply(Candidates& c, const SamplerInput& in) { c.keep_mass(in.values[0], c.mean_nats()); }

}  // namespace

extern const SamplerDef kSampler_typical;
const SamplerDef kSampler_typical{.name = "typical",
                                  .order = 80,
                                  .help = "keep tokens of typical surprise",
                                  .params = kParams,
                                  .cuts = true,
                                  .apply = apply};

}  // namespace vitrine
