#include "sampling/weight_sum.h"

#include "base/cpu_features.h"
#include "base/draw_weight.h"

namespace vitrine {
namespace {

[[gnu::always_inline]] inline std::uint64_t sum(std::span<const float> logits, double max,
                                                double scale) {
  std::uint64_t total = 0;
  for (const float x : logits) total += weight((max - x) * scale);
  return total;
}

// The same operations in wider vectors: the same integers.
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]] std::uint64_t
sum_avx512(std::span<const float> logits, double max, double scale) {
  return sum(logits, max, scale);
}

std::uint64_t sum_avx2(std::span<const float> logits, double max, double scale) {
  return sum(logits, max, scale);
}

}  // namespace

std::uint64_t sum_weights(std::span<const float> logits, double max, double scale) {
  static const bool wide = cpu_features().avx512;
  return wide ? sum_avx512(logits, max, scale) : sum_avx2(logits, max, scale);
}

}  // namespace vitrine
