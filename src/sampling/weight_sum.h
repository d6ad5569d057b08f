// The total weight of a vocabulary: the one pass over all tokens that a draw always needs.
#pragma once

#include <cstdint>
#include <span>

namespace vitrine {

// The sum of weight((max - x) * scale) over the logits x (none NaN, none above max).
std::uint64_t sum_weights(std::span<const float> logits, double max, double scale);

}  // namespace vitrine
