// Keep the tokens whose logit is at least max - n * sigma, where sigma is the (population) standard
// deviation of the logits: most of a vocabulary is noise around a mean, and what stands out of it
// means something. The temperature cancels. Tang et al. 2024, "Top-n-sigma: Not All Logits Are You
// Need".
#include "sampling/candidates.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr Param kParams[] = {{.name = "top_n_sigma",
                              .neutral = -1,
                              .min = -1,
                              .max = 100,
                              .help = "keep logits within this many standard deviations of the "
                                      "best; 0 or less: off"}};

bool active(std::span<const double> values, const TokenLists&) { return values[0] > 0; }

void apply(Candidates& c, const SamplerInput& in) { c.keep_within(in.values[0] * c.deviation()); }

}  // namespace

extern const SamplerDef kSampler_top_n_sigma;
const SamplerDef kSampler_top_n_sigma{.name = "top_n_sigma",
                                      .order = 45,
                                      .help = "keep the tokens that stand out of the noise",
                                      .params = kParams,
                                      .cuts = true,
                                      .active = active,
                                      .apply = apply};

}  // namespace vitrine
