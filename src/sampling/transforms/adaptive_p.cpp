// Prefers tokens whose probability p is near a target, and moves the target so that the tokens taken
// have it on average: with x = |p - a| / 0.3, logit' = 5 - 10 x^2 / (1 + x), where a = 2 target - W / S,
// from 0 to 1. W and S are sums over the tokens taken, of p and of 1, in which each step counts less
// than the next one: W = p + decay * W, S = 1 + decay * S. They start as if all had met the target.
// llama.cpp's adaptive-p. It wants a cut such as min_p before it: unlikely tokens gain by it.
#include <algorithm>
#include <cmath>

#include "sampling/candidates.h"
#include "sampling/history.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr Param kParams[] = {
    {.name = "adaptive_target",
     .neutral = -1,
     .min = -1,
     .max = 1,
     .help = "prefer tokens of about this probability; below 0: off"},
    {.name = "adaptive_decay",
     .neutral = 0.9,
     .min = 0,
     .max = 0.99,
     .help = "how long adaptive_target remembers the tokens taken: lower reacts faster"}};

bool active(std::span<const double> values, const TokenLists&) { return values[0] >= 0; }

void apply(Candidates& c, const SamplerInput& in) {
  const SamplerMemory& memory = in.history.memory;
  const double aim = std::clamp(2 * in.values[0] - memory.a / memory.b, 0.0, 1.0);
  c.remake([aim](double p) {
    const double x = std::fabs(p - aim) / 0.3;
    return 5 - 10 * x * x / (1 + x);
  });
}

void begin(SamplerMemory& memory, std::span<const double> values) {
  memory.a = values[0] / (1 - values[1]);
  memory.b = 1 / (1 - values[1]);
}

void taken(SamplerMemory& memory, std::span<const double> values, double p) {
  memory.a = p + values[1] * memory.a;
  memory.b = 1 + values[1] * memory.b;
}

constexpr SamplerStateDef kState{.begin = begin, .taken = taken, .before = true};

}  // namespace

extern const SamplerDef kSampler_adaptive_p;
const SamplerDef kSampler_adaptive_p{.name = "adaptive_p",
                                     .order = 120,
                                     .help = "prefer tokens whose probability is near a target",
                                     .params = kParams,
                                     .cuts = true,
                                     .state = &kState,
                                     .active = active,
                                     .apply = apply};

}  // namespace vitrine
