// Keep the tokens with a probability of at least min(epsilon, sqrt(epsilon) * e^-H), and the best,
// where H is the entropy: the bar is lower where the model is unsure. Hewitt, Manning, Liang 2022,
// "Truncation Sampling as Language Model Desmoothing".
#include <algorithm>
#include <cmath>

#include "sampling/candidates.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr Param kParams[] = {{.name = "eta_cutoff",
                              .neutral = 0,
                              .min = 0,
                              .max = 1,
                              .help = "drop tokens below this probability, or below less where "
                                      "the model is unsure; 0: off"}};

void apply(Candidates& c, const SamplerInput& in) {
  const double epsilon = in.values[0];
  c.keep_share(std::min(epsilon, std::sqrt(epsilon) * std::exp(-c.entropy())));
}

}  // namespace

extern const SamplerDef kSampler_eta_cutoff;
const SamplerDef kSampler_eta_cutoff{
    .name = "eta_cutoff",
    .order = 100,
    .help = "drop tokens of little probability, fewer where the model is unsure",
    .params = kParams,
    .cuts = true,
    .apply = apply};

}  // namespace vitrine
