// "Exclude top choices": by a coin, of the tokens with a probability of at least the threshold, drop
// all but the least likely one. With fewer than two such tokens nothing happens, so above a
// threshold of 0.5 it is off. Weidmann 2024 (text-generation-webui, llama.cpp).
//
// The coin is a function of seed, choice and position, like the noise of the draw and independent of
// it.
#include "sampling/candidates.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr Param kParams[] = {{.name = "xtc_probability",
                              .neutral = 0,
                              .min = 0,
                              .max = 1,
                              .help = "how often the likeliest tokens are dropped; 0: off"},
                             {.name = "xtc_threshold",
                              .neutral = 0.1,
                              .min = 0,
                              .max = 1,
                              .min_excluded = true,
                              .help = "the least probability of those tokens; one of them stays"}};

bool active(std::span<const double> values, const TokenLists&) {
  return values[0] > 0 && values[1] <= 0.5;
}

// Uniform in [0, 1).
double coin(const DrawKey& key) {
  return static_cast<double>(low_bits(random_bits(key, 0, RandomStream::kCoin)) >> 11) * 0x1p-53;
}

void apply(Candidates& c, const SamplerInput& in) {
  if (coin(in.key) >= in.values[0]) return;
  const double least = in.values[1] * static_cast<double>(c.total());
  const auto is_top = [least](std::uint64_t w) { return static_cast<double>(w) >= least; };
  std::int32_t last = -1;
  int tops = 0;
  float lowest = 0;
  c.for_each([&](std::int32_t id, float logit, std::uint64_t w) {
    if (!is_top(w)) return;
    ++tops;
    if (last < 0 || logit < lowest || (logit == lowest && id > last)) last = id, lowest = logit;
  });
  if (tops < 2) return;
  c.keep_if([&](const Candidate& x) { return x.id == last || !is_top(x.weight); });
}

}  // namespace

extern const SamplerDef kSampler_xtc;
const SamplerDef kSampler_xtc{.name = "xtc",
                              .order = 110,
                              .help = "now and then, drop the likeliest tokens but one",
                              .params = kParams,
                              .cuts = true,
                              .active = active,
                              .apply = apply};

}  // namespace vitrine
