// Decoding attention of the cpu backend by length of the context: one row, the shape of Llama 3.2
// 1B. The caches of all layers together are larger than any of the machine's.
#include <benchmark/benchmark.h>

#include "kernels/testing.h"

namespace vitrine::testing {
namespace {

constexpr int kLayers = 16, kHeads = 32, kKvHeads = 8, kDim = 64, kPage = 32;

void attention(benchmark::State& state) {
  const auto length = static_cast<std::int32_t>(state.range(0));
  auto backend = make_backend("cpu");
  const KvShape shape{KvLayout::uniform(kKvHeads, kDim, DType::kF16), kPage};
  const std::int32_t pages = length / kPage;
  const std::int64_t bytes = backend->kv_page_bytes(shape) * pages;
  Buffer memory = std::move(backend->allocate(bytes * kLayers)).value();
  // Small numbers everywhere: 0x2C00 is 2^-4 in f16.
  std::vector<std::uint16_t> fill(static_cast<std::size_t>(bytes) / 2, 0x2C00);
  for (int i = 0; i < kLayers; ++i)
    backend->write(static_cast<std::byte*>(memory.data()) + i * bytes, fill.data(), bytes);
  Arena arena;
  std::vector<std::int32_t> table;
  for (std::int32_t p = 0; p < pages; ++p) table.push_back(p);
  KvIndex index{arena.i32({length - 1}), arena.i32({0, 1}), arena.i32({length - 1}),
                arena.i32(table).view({1, pages})};
  Tensor q = arena.random({1, kHeads, kDim}), out = arena.f32({1, kHeads, kDim});
  int layer = 0;
  for (auto _ : state) {
    KvCache cache{shape, pages, static_cast<std::byte*>(memory.data()) + layer * bytes};
    backend->attention(out, q, cache, index, {0.125f, 0, 0});
    layer = (layer + 1) % kLayers;
  }
  state.counters["GB/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(bytes) * 1e-9,
      benchmark::Counter::kIsRate);
}
BENCHMARK(attention)->Arg(128)->Arg(1024)->Arg(4096)->Arg(16384)->UseRealTime();

}  // namespace
}  // namespace vitrine::testing
