#include <algorithm>
#include <chrono>

#include "kernels/cpu/backend.h"
#include "kernels/host_memory.h"

namespace vitrine::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

// Best of several short runs on all threads: a peak is what the machine can do, not what it did
// while something else ran.
Peak CpuBackend::measure_peak(DType weights) {
  constexpr std::int64_t kRounds = 1 << 20, kAmxRounds = 1 << 17;
  // A run of products takes about 2 ms; in the first ones threads may share a CPU.
  constexpr int kRuns = 5, kProductRuns = 50;
  const Arithmetic arithmetic = arithmetic_of(weights, isa_);
  auto multiply = [&](float* sink) {
    switch (arithmetic) {
      case Arithmetic::kAmx:
        return amx_flops(kAmxRounds);
      case Arithmetic::kAmxIntegers:
        return amx_byte_ops(kAmxRounds);
      case Arithmetic::kBf16:
        return bf16_flops(kRounds, sink);
      case Arithmetic::kBytes:
        return k_.byte_ops(kRounds, sink);
      case Arithmetic::kFp32:
      case Arithmetic::kRows:
        break;
    }
    return k_.fma_flops(kRounds, sink);
  };
  constexpr std::int64_t kBytes = std::int64_t{512} << 20;
  Peak peak;
  std::vector<float> sinks(threads());
  for (int run = 0; run < kProductRuns; ++run) {
    std::vector<double> flops(threads(), 0);
    auto start = Clock::now();
    pool_.run(threads(), [&](std::int64_t i, int) { flops[i] = multiply(&sinks[i]); });
    double total = 0;
    for (double f : flops) total += f;
    peak.gflop_s = std::max(peak.gflop_s, total / seconds_since(start) * 1e-9);
  }
  auto buffer = allocate_host(kBytes);
  if (!buffer.ok()) return peak;
  auto* data = static_cast<float*>(buffer->data());
  const std::int64_t n = kBytes / 4, share = n / threads() / 128 * 128;
  pool_.run(threads(), [&](std::int64_t i, int) { std::fill_n(data + i * share, share, 1.0f); });
  for (int run = 0; run < kRuns; ++run) {
    auto start = Clock::now();
    pool_.run(threads(),
              [&](std::int64_t i, int) { k_.read_all(data + i * share, share, &sinks[i]); });
    double bytes = static_cast<double>(share) * threads() * 4;
    peak.read_gb_s = std::max(peak.read_gb_s, bytes / seconds_since(start) * 1e-9);
  }
  return peak;
}

}  // namespace vitrine::cpu
