// Keep the best tokens until their probabilities sum to p; the one that crosses p is kept. Holtzman
// et al. 2019, "The Curious Case of Neural Text Degeneration".
#include "sampling/candidates.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr Param kParams[] = {{.name = "top_p",
                              .neutral = 1,
                              .min = 0,
                              .max = 1,
                              .min_excluded = true,
                              .help = "keep the best tokens that make up this share; 1: off"}};

void apply(Candidates& c, const SamplerInput& in) { c.keep_mass(in.values[0]); }

bool on_device(DeviceDraw& draw, std::span<const double> values) {
  draw.top_p = values[0];
  return true;
}

}  // namespace

extern const SamplerDef kSampler_top_p;
const SamplerDef kSampler_top_p{.name = "top_p",
                                .order = 60,
                                .help = "keep the best tokens up to a share of the probability",
                                .params = kParams,
                                .cuts = true,
                                .apply = apply,
                                .on_device = on_device};

}  // namespace vitrine
