// What telling the log about a step costs: within the lock, at the end of every commit.
#include <benchmark/benchmark.h>

#include "engine/records.h"

namespace vitrine {
namespace {

// Of so many sequences that decode, with so many changes of pages (in 32 tokens each takes a page, and names one).
void append_step(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0)), pages = static_cast<int>(state.range(1));
  Records records(n, 32 << 20);
  Changes changes;
  changes.turn_on(n, records.most_pages());
  StepRecord record;
  for (int i = 0; i < n; ++i)
    record.entries.push_back({.sequence = static_cast<std::uint64_t>(i) + 1,
                              .first = 1000,
                              .tokens = 1,
                              .sampled = true,
                              .slot = i,
                              .flops = 1e9,
                              .kv_read_bytes = 1e6,
                              .kv_write_bytes = 1e3,
                              .share_ns = 1000,
                              .kept = 1,
                              .drawn = 1});
  auto append = [&] {
    for (int i = 0; i < pages; ++i) changes.page({PageOp::kName, 0, i, 1, 31, 1});
    records.committed(record, changes);
    ++record.step;
  };
  while (records.log().oldest().seq < 2) append();  // its memory is there
  for (auto _ : state) append();
}
BENCHMARK(append_step)->Args({1, 0})->Args({64, 2})->Args({256, 0})->Args({256, 8});

}  // namespace
}  // namespace vitrine
