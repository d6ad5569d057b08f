// Keeps the surprise of the text near a target: cuts so that the expected surprise of a token, -log2 p,
// is about tau bits, and corrects the bar mu, which starts at 2 tau, by what the token taken has
// brought: mu -= eta * (-log2 p - tau), where p is its probability among what was left. Basu et al.
// 2021, "Mirostat: A Neural Text Decoding Algorithm that Directly Controls Perplexity".
//
// Version 2 keeps the tokens with -log2 p <= mu. Version 1 estimates the exponent s of a Zipf
// distribution from the 100 best tokens, and from it how many tokens k have a surprise of up to mu.
//
// It takes the place of all other cuts; bias, penalties and temperature come before it.
#include <algorithm>
#include <cmath>

#include "sampling/candidates.h"
#include "sampling/history.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr std::size_t kEstimatedFrom = 100;

constexpr Param kParams[] = {
    {.name = "mirostat",
     .neutral = 0,
     .min = 0,
     .max = 2,
     .integer = true,
     .help = "keep the surprise near mirostat_tau, by version 1 or 2; replaces other cuts; 0: off"},
    {.name = "mirostat_tau",
     .neutral = 5,
     .min = 0,
     .max = 20,
     .help = "the surprise of a token to aim at, in bits"},
    {.name = "mirostat_eta",
     .neutral = 0.1,
     .min = 0,
     .max = 1,
     .help = "how fast mirostat corrects itself"}};

bool active(std::span<const double> values, const TokenLists&) { return values[0] > 0; }

// The number of tokens to keep by version 1.
double zipf_cut(std::span<const Candidate> best, const Candidates& c, double mu) {
  double up = 0, down = 0;
  for (std::size_t i = 0; i + 1 < best.size(); ++i) {
    const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    up += t * (c.nats(best[i + 1].logit) - c.nats(best[i].logit));
    down += t * t;
  }
  if (down == 0) return 1;
  const double s = up / down, epsilon = s - 1, n = static_cast<double>(c.size());
  // (1 - n^-epsilon) / epsilon, which goes to ln n.
  const double span =
      std::fabs(epsilon) < 1e-9 ? std::log(n) : (1 - std::pow(n, -epsilon)) / epsilon;
  return std::pow(std::exp2(mu) / span, 1 / s);
}

void apply(Candidates& c, const SamplerInput& in) {
  const double mu = in.history.memory.a;
  if (in.values[0] == 2) return c.keep_share(std::exp2(-mu));
  const double k = zipf_cut(c.best(kEstimatedFrom), c, mu);
  if (!(k >= 2))
    c.keep_first(1);
  else if (k < static_cast<double>(c.size()))
    c.keep_first(static_cast<std::size_t>(k));
}

void begin(SamplerMemory& memory, std::span<const double> values) { memory.a = 2 * values[1]; }

void taken(SamplerMemory& memory, std::span<const double> values, double p) {
  memory.a -= values[2] * (-std::log2(p) - values[1]);
}

constexpr SamplerStateDef kState{.begin = begin, .taken = taken};

}  // namespace

extern const SamplerDef kSampler_mirostat;
const SamplerDef kSampler_mirostat{.name = "mirostat",
                                   .order = 130,
                                   .help = "keep the surprise of the text near a target",
                                   .params = kParams,
                                   .replaces_cuts = true,
                                   .state = &kState,
                                   .active = active,
                                   .apply = apply};

}  // namespace vitrine
