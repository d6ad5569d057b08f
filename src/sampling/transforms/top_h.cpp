// Of the 100 best tokens, keep the best while their part of the entropy is at most top_h of it all:
// the sum of -p ln p over those kept <= top_h * H. The best one always stays. Potraghloo et al. 2025,
// "Top-H Decoding"; the 100 are Hugging Face's.
#include <cmath>

#include "sampling/candidates.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr std::size_t kConsidered = 100;

constexpr Param kParams[] = {{.name = "top_h",
                              .neutral = 0,
                              .min = 0,
                              .max = 1,
                              .help = "keep the best tokens that make up this share of the "
                                      "entropy; 0: off"}};

// The order of the sums is that of the tokens.
void apply(Candidates& c, const SamplerInput& in) {
  const std::span<const Candidate> sorted = c.sorted_first(kConsidered);
  const auto total = static_cast<double>(c.total());
  const auto part = [&](const Candidate& token) {
    const double p = static_cast<double>(token.weight) / total;
    return p > 0 ? -p * std::log(p) : 0;
  };
  double entropy = 0, sum = 0;
  for (const Candidate& token : sorted) entropy += part(token);
  std::size_t n = 0;
  while (n < sorted.size() && (sum += part(sorted[n])) <= in.values[0] * entropy) ++n;
  c.keep_first(std::max<std::size_t>(n, 1));
}

}  // namespace

extern const SamplerDef kSampler_top_h;
const SamplerDef kSampler_top_h{.name = "top_h",
                                .order = 48,
                                .help = "keep the best tokens up to a share of the entropy",
                                .params = kParams,
                                .cuts = true,
                                .apply = apply};

}  // namespace vitrine
