// What planning a step costs, without computing it.
#include <benchmark/benchmark.h>

#include "engine/scheduler.h"

namespace vitrine {
namespace {

constexpr int kPage = 32, kPrompt = 512;

MemoryPlan make_plan(int sequences) {
  MemoryPlan plan;
  plan.context = 1 << 20, plan.sequences = sequences, plan.page_size = kPage;
  CacheGroup full{.spec = CacheSpec(8, 64)};
  full.pages_per_sequence = (1 << 20) / kPage;
  full.pages = sequences * 64 + full.pages_per_sequence;
  plan.groups.push_back(full);
  return plan;
}

std::unique_ptr<Sequence> make_sequence(const Scheduler& scheduler, std::uint64_t id) {
  auto s = std::make_unique<Sequence>();
  s->id = id;
  s->rank = static_cast<std::int64_t>(id);
  for (int i = 0; i < kPrompt; ++i) s->tokens.push_back(static_cast<int>(id * 31 + i));
  s->tokens.reserve(1 << 20);
  s->prompt = s->prefill_end = kPrompt;
  s->max_output = 1 << 19;
  s->tables.emplace_back(kPage, 0, 1 << 20);
  s->root = scheduler.hasher().root("");
  s->keys.reserve((1 << 20) / kPage);
  for (int i = 0; (i + 1) * kPage <= kPrompt; ++i)
    s->keys.push_back(scheduler.hasher().extend(i == 0 ? s->root : s->keys.back(),
                                                std::span(s->tokens).subspan(i * kPage, kPage)));
  s->stream = std::make_shared<TokenStream>();
  s->submitted = Clock::now();
  return s;
}

void draw(Batch& batch) {
  for (BatchEntry& e : batch.entries) {
    e.first_token = static_cast<int>(batch.drawn.size()), e.tokens = e.draws;
    batch.drawn.resize(batch.drawn.size() + e.draws, {.id = 1});
  }
}

// All sequences decode, a token each, and as many wait.
void plan_decode(benchmark::State& state) {
  int n = static_cast<int>(state.range(0));
  MemoryPlan plan = make_plan(n);
  EngineOptions options;
  options.step_tokens = 1 << 16;
  Scheduler scheduler(plan, options);
  for (int i = 0; i < 2 * n; ++i) scheduler.add(make_sequence(scheduler, i + 1));
  Batch batch;
  StepRecord record;
  auto commit = [&] {
    draw(batch);
    scheduler.commit(batch, record);
  };
  scheduler.plan(batch, Clock::now());
  commit();
  for (auto _ : state) {
    scheduler.plan(batch, Clock::now());
    benchmark::DoNotOptimize(batch.entries.data());
    state.PauseTiming();
    commit();
    state.ResumeTiming();
  }
  state.counters["rows"] = static_cast<double>(batch.tokens);
}
BENCHMARK(plan_decode)->Arg(16)->Arg(64)->Arg(256)->Iterations(2000);

// Planning and committing together.
void plan_and_commit(benchmark::State& state) {
  int n = static_cast<int>(state.range(0));
  MemoryPlan plan = make_plan(n);
  EngineOptions options;
  options.step_tokens = 1 << 16;
  Scheduler scheduler(plan, options);
  for (int i = 0; i < n; ++i) scheduler.add(make_sequence(scheduler, i + 1));
  Batch batch;
  StepRecord record;
  for (auto _ : state) {
    scheduler.plan(batch, Clock::now());
    draw(batch);
    scheduler.commit(batch, record);
  }
}
BENCHMARK(plan_and_commit)->Arg(64)->Arg(256)->Iterations(2000);

}  // namespace
}  // namespace vitrine
