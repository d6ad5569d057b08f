// Keep the k tokens with the highest logits. Fan et al. 2018, "Hierarchical Neural Story
// Generation".
#include "sampling/candidates.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr Param kParams[] = {{.name = "top_k",
                              .neutral = 0,
                              .min = -1,
                              .max = 2147483647,
                              .integer = true,
                              .help = "keep only the k best tokens; 0 or -1: off"}};

bool active(std::span<const double> values, const TokenLists&) { return values[0] > 0; }

void apply(Candidates& c, const SamplerInput& in) {
  c.keep_first(static_cast<std::size_t>(in.values[0]));
}

bool on_device(DeviceDraw& draw, std::span<const double> values) {
  if (draw.top_k != 1) draw.top_k = static_cast<int>(values[0]);
  return true;
}

}  // namespace

extern const SamplerDef kSampler_top_k;
const SamplerDef kSampler_top_k{.name = "top_k",
                                .order = 50,
                                .help = "keep the k best tokens",
                                .params = kParams,
                                .cuts = true,
                                .active = active,
                                .apply = apply,
                                .on_device = on_device};

}  // namespace vitrine
