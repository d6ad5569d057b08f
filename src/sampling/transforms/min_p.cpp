// Keep the tokens whose probability is at least min_p times that of the best one. Nguyen et al.
// 2024, "Turning Up the Heat: Min-p Sampling".
#include <cmath>

#include "sampling/candidates.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr Param kParams[] = {{.name = "min_p",
                              .neutral = 0,
                              .min = 0,
                              .max = 1,
                              .help = "drop tokens below this share of the best one; 0: off"}};

void apply(Candidates& c, const SamplerInput& in) { c.keep_within(-std::log(in.values[0])); }

bool on_device(DeviceDraw& draw, std::span<const double> values) {
  draw.max_nats = -std::log(values[0]);
  return true;
}

}  // namespace

extern const SamplerDef kSampler_min_p;
const SamplerDef kSampler_min_p{.name = "min_p",
                                .order = 70,
                                .help = "drop tokens far less likely than the best",
                                .params = kParams,
                                .cuts = true,
                                .apply = apply,
                                .on_device = on_device};

}  // namespace vitrine
