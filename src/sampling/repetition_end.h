// What ends a text that goes in circles (vLLM's repetition_detection): it ends with a pattern of
// `least` to `most` tokens, `count` times in a row.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"

namespace vitrine {

struct RepetitionEnd {
  static constexpr int kMostTokens = 256, kMostCount = 64;

  int least = 1, most = 0, count = 2;

  // Refuses patterns of less than one token or more than kMostTokens, and counts outside 2 to
  // kMostCount.
  Status check() const;
  // Work: most * count comparisons a pattern at the most, and usually one.
  bool found(std::span<const std::int32_t> output) const;
};

}  // namespace vitrine
