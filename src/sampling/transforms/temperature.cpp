// logit' = logit / temperature. At 0 only the best token is kept: greedy. The maximum is OpenAI's.
#include <algorithm>

#include "sampling/candidates.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr Param kParams[] = {{.name = "temperature",
                              .neutral = 1,
                              .min = 0,
                              .max = 2,
                              .help = "0: always the best token; higher: more varied"}};

// Below this the second best has no weight unless it ties, so a smaller value changes nothing and
// could only overflow.
constexpr double kColdest = 1e-6;

void apply(Candidates& c, const SamplerInput& in) {
  const double temperature = in.values[0];
  if (temperature == 0)
    c.keep_first(1);
  else
    c.scale(1 / std::max(temperature, kColdest));
}

void on_device(DeviceDraw& draw, std::span<const double> values) {
  if (values[0] == 0)
    draw.top_k = 1;
  else
    draw.scale = 1 / std::max(values[0], kColdest);
}

}  // namespace

extern const SamplerDef kSampler_temperature;
const SamplerDef kSampler_temperature{.name = "temperature",
                                      .order = 40,
                                      .help = "flatten or sharpen the distribution",
                                      .params = kParams,
                                      .apply = apply,
                                      .on_device = on_device};

}  // namespace vitrine
