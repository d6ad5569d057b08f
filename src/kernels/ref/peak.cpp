#include <algorithm>
#include <chrono>

#include "kernels/ref/backend.h"

namespace vitrine::ref {

// Plain loops on one thread, as ref computes for weights of any type.
Peak RefBackend::measure_peak(DType) {
  using Clock = std::chrono::steady_clock;
  std::vector<float> data(std::size_t{1} << 26, 1.0f);
  Peak peak;
  for (int run = 0; run < 3; ++run) {
    float sums[8] = {};
    auto start = Clock::now();
    for (std::size_t i = 0; i < data.size(); i += 8)
      for (int j = 0; j < 8; ++j) sums[j] += data[i + j] * 0.5f;
    volatile float sink = sums[0] + sums[7];
    (void)sink;
    double s = std::chrono::duration<double>(Clock::now() - start).count();
    auto n = static_cast<double>(data.size());
    peak.read_gb_s = std::max(peak.read_gb_s, 4 * n / s * 1e-9);
    peak.gflop_s = std::max(peak.gflop_s, 2 * n / s * 1e-9);
  }
  return peak;
}

}  // namespace vitrine::ref
