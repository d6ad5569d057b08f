// Matrix products of the cpu backend by weight type and rows: share of the memory bandwidth and
// multiply-adds a second. The matrices of one case are larger together than any cache.
#include <benchmark/benchmark.h>

#include "kernels/testing.h"

namespace vitrine::testing {
namespace {

constexpr std::int64_t kRows = 8192, kCols = 2048, kBytes = std::int64_t{400} << 20;

// All rows of a matrix are the same memory: making random ones would take longer than the products.
struct Weights {
  explicit Weights(const Format& format) : backend(make_backend("cpu")) {
    MatrixSource m = arena.matrix(format, 1, kCols);
    m.row_data.resize(kRows, m.row_data[0]);
    for (std::int64_t bytes = 0; bytes < kBytes; bytes += list.back()->bytes())
      list.push_back(std::move(backend->pack(m, WeightUse::kMatmul)).value());
  }
  Arena arena;
  std::unique_ptr<Backend> backend;
  std::vector<std::unique_ptr<Weight>> list;
};

void matmul(benchmark::State& state, const char* name) {
  static std::map<std::string, std::unique_ptr<Weights>> cache;
  if (!cache.count(name)) cache.clear();
  auto& weights = cache[name];
  if (weights == nullptr) weights = std::make_unique<Weights>(*find_format(name));
  const std::int64_t M = state.range(0);
  Tensor x = weights->arena.random({M, kCols}), out = weights->arena.f32({M, kRows});
  std::size_t next = 0;
  for (auto _ : state) {
    weights->backend->matmul(out, x, *weights->list[next]);
    next = (next + 1) % weights->list.size();
  }
  auto count = static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(
      count * static_cast<double>(weights->list[0]->bytes()) * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GMAC/s"] = benchmark::Counter(
      count * static_cast<double>(M * kRows * kCols) * 1e-9, benchmark::Counter::kIsRate);
}

const bool kRegistered = [] {
  for (const Format& format : all_formats())
    benchmark::RegisterBenchmark(format.info.name, matmul, format.info.name)
        ->Arg(1)
        ->Arg(4)
        ->Arg(16)
        ->Arg(64)
        ->Arg(512)
        ->UseRealTime();
  return true;
}();

}  // namespace
}  // namespace vitrine::testing
