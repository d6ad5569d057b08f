// What telling about a step costs: the log within the lock at the end of every commit, and who watches outside of it.
#include <benchmark/benchmark.h>

#include "engine/records.h"
#include "trace/event_json.h"

namespace vitrine {
namespace {

StepRecord decoding(int n) {
  StepRecord record;
  for (int i = 0; i < n; ++i)
    record.entries.push_back({.sequence = static_cast<std::uint64_t>(i) + 1000,
                              .first = 1000,
                              .tokens = 1,
                              .sampled = true,
                              .slot = i,
                              .flops = 27'566'080,
                              .kv_read_bytes = 786'432,
                              .kv_write_bytes = 3072,
                              .share_ns = 41'234,
                              .kept = 1,
                              .drawn = 1});
  return record;
}

// Of so many sequences that decode, with so many changes of pages (in 32 tokens each takes a page, and names one).
void append_step(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0)), pages = static_cast<int>(state.range(1));
  Records records(n, 32 << 20);
  Changes changes;
  changes.turn_on(n, records.most_pages());
  StepRecord record = decoding(n);
  auto append = [&] {
    for (int i = 0; i < pages; ++i) changes.page({PageOp::kName, 0, i, 1, 31, 1});
    records.committed(record, changes);
    ++record.step;
  };
  while (records.log().oldest().seq < 2) append();  // its memory is there
  for (auto _ : state) append();
}
BENCHMARK(append_step)->Args({1, 0})->Args({64, 2})->Args({256, 0})->Args({256, 8});

// A step of so many, read from the log and written as JSON.
void write_step(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  Records records(n, 32 << 20);
  Changes changes;
  StepRecord record = decoding(n);
  records.committed(record, changes);
  std::vector<std::uint64_t> words;
  std::string out;
  for (auto _ : state) {
    StepLog::Place place = records.log().oldest();
    records.log().read(place, words, 1 << 20);
    out.clear();
    StepLog::each(words, [&](const PackedEvent& event) { append_event_fields(out, event); });
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["bytes"] = static_cast<double>(out.size());
}
BENCHMARK(write_step)->Arg(1)->Arg(64)->Arg(256);

}  // namespace
}  // namespace vitrine
