// logit' = logit / temperature. At 0 only the best token is kept: greedy. The maximum is OpenAI's.
//
// With a dynatemp_range r > 0 ("dynamic temperature", llama.cpp) the temperature depends on how sure
// the model is, unless temperature is 0: lo + (hi - lo) * (H / ln n)^dynatemp_exponent, where lo and hi are temperature - r
// (at least 0) and temperature + r, H is the entropy and n the number of tokens that are left.
#include <algorithm>
#include <cmath>

#include "sampling/candidates.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr Param kParams[] = {
    {.name = "temperature",
     .neutral = 1,
     .min = 0,
     .max = 2,
     .help = "0: always the best token; higher: more varied"},
    {.name = "dynatemp_range",
     .neutral = 0,
     .min = 0,
     .max = 2,
     .help = "the temperature goes up and down by this, with the model's uncertainty; 0: off"},
    {.name = "dynatemp_exponent",
     .neutral = 1,
     .min = 0,
     .max = 10,
     .help = "of the uncertainty from 0 to 1, with dynatemp_range; higher: colder"}};

// Below this the second best has no weight unless it ties, so a smaller value changes nothing and
// could only overflow.
constexpr double kColdest = 1e-6;

bool active(std::span<const double> values, const TokenLists&) {
  return values[0] != 1 || values[1] != 0;
}

double dynamic(Candidates& c, double temperature, double range, double exponent) {
  const std::size_t n = c.unmasked();
  if (n < 2) return temperature;
  const double low = std::max(0.0, temperature - range), high = temperature + range;
  const double unsure = std::clamp(c.entropy() / std::log(static_cast<double>(n)), 0.0, 1.0);
  return low + (high - low) * std::pow(unsure, exponent);
}

void apply(Candidates& c, const SamplerInput& in) {
  double temperature = in.values[0];
  if (temperature > 0 && in.values[1] > 0)
    temperature = dynamic(c, temperature, in.values[1], in.values[2]);
  if (temperature == 0)
    c.keep_first(1);
  else
    c.scale(1 / std::max(temperature, kColdest));
}

bool on_device(DeviceDraw& draw, std::span<const double> values) {
  if (values[0] > 0 && values[1] > 0) return false;
  if (values[0] == 0)
    draw.top_k = 1;
  else
    draw.scale = 1 / std::max(values[0], kColdest);
  return true;
}

}  // namespace

extern const SamplerDef kSampler_temperature;
const SamplerDef kSampler_temperature{.name = "temperature",
                                      .order = 40,
                                      .help = "flatten or sharpen the distribution",
                                      .params = kParams,
                                      .active = active,
                                      .apply = apply,
                                      .on_device = on_device};

}  // namespace vitrine
