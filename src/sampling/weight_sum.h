// The total weight of a vocabulary, which top_p, typical_p and log probabilities need.
#pragma once

#include <cstdint>
#include <span>

namespace vitrine {

// The sum of weight((max - x) * scale) over the logits x (none NaN, none above max).
std::uint64_t sum_weights(std::span<const float> logits, double max, double scale);

}  // namespace vitrine
