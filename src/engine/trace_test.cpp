// What the log tells is what happened: a snapshot and the events after it are the next snapshot, whatever is
// forked, preempted, cancelled or committed late.
#include <map>

#include "engine/test_load.h"
#include "support/allocation_count.h"
#include "trace/packing.h"
#include "trace/reducer.h"

namespace vitrine {
namespace {

using namespace test;

TraceState state_of(const Engine::Moment& m) {
  TraceState out;
  out.seq = m.seq;
  for (const auto* list : {&m.snapshot.running, &m.snapshot.waiting})
    for (const SequenceStats& s : *list) {
      using Phase = TraceState::Phase;
      const bool preempted = s.slot < 0 && s.account.preemptions > 0;
      out.sequences[s.account.id] = {.phase = preempted                    ? Phase::kPreempted
                                              : s.slot < 0                 ? Phase::kWaiting
                                              : s.computed < s.prefill_end ? Phase::kPrefill
                                                                           : Phase::kDecode,
                                     .slot = s.slot,
                                     .prompt = s.account.usage.prompt_tokens,
                                     .prefill_end = s.prefill_end,
                                     .cached = s.account.usage.cached_tokens,
                                     .computed = s.computed,
                                     .output = s.account.usage.completion_tokens,
                                     .preemptions = s.account.preemptions};
    }
  for (const PageMap::Group& g : m.pages.groups) {
    TraceState::Group& group = out.groups.emplace_back(TraceState::Group{g.page_size, {}});
    for (std::size_t i = 0; i < g.pages.size(); ++i)
      group.pages.push_back({g.named[i], g.holders[i], g.fill[i]});
  }
  for (const PageMap::Table& t : m.pages.tables) {
    auto& table = out.tables[t.sequence];
    table.resize(out.groups.size());
    table[t.group].assign(t.pages.begin(), t.pages.end());
  }
  out.blocked = m.snapshot.blocked;
  return out;
}

void expect_same(const TraceState& is, const TraceState& wanted) {
  ASSERT_EQ(is.seq, wanted.seq);
  ASSERT_FALSE(is.lost);
  for (const auto& [id, s] : wanted.sequences) {
    ASSERT_TRUE(is.sequences.contains(id)) << id;
    const auto& found = is.sequences.at(id);
    EXPECT_EQ(found.phase, s.phase) << id;
    EXPECT_EQ(found.slot, s.slot) << id;
    EXPECT_EQ(found.prefill_end, s.prefill_end) << id;
    EXPECT_EQ(found.cached, s.cached) << id;
    EXPECT_EQ(found.computed, s.computed) << id;
    EXPECT_EQ(found.output, s.output) << id;
    EXPECT_EQ(found.preemptions, s.preemptions) << id;
  }
  ASSERT_EQ(is.sequences.size(), wanted.sequences.size());
  ASSERT_EQ(is.groups.size(), wanted.groups.size());
  for (std::size_t g = 0; g < is.groups.size(); ++g)
    for (std::size_t i = 0; i < is.groups[g].pages.size(); ++i) {
      const auto &found = is.groups[g].pages[i], &page = wanted.groups[g].pages[i];
      ASSERT_EQ(found.named, page.named) << g << " " << i;
      ASSERT_EQ(found.holders, page.holders) << g << " " << i;
      ASSERT_EQ(found.fill, page.fill) << g << " " << i;
    }
  ASSERT_EQ(is.tables, wanted.tables);
  ASSERT_EQ(is.blocked, wanted.blocked);
  ASSERT_EQ(is, wanted);
}

// The fourth of what adds up in docs/trace.md: the state at one moment and the events up to another are the state there.
class Reduced : public testing::TestWithParam<std::tuple<bool, int>> {};

TEST_P(Reduced, ASnapshotAndTheEventsAfterItAreTheNextSnapshot) {
  constexpr std::uint64_t kSteps = 2500;  // of each of the four
  auto [window, delay] = GetParam();
  std::mt19937 rng(200 + window * 2 + delay);
  auto engine = make_engine(cramped(delay), window);
  std::vector<std::shared_ptr<TokenStream>> streams;
  engine->watch();
  Engine::Moment from = engine->moment();
  TraceState state = state_of(from);
  StepLog::Place place = from.place;
  std::vector<std::uint64_t> words;
  std::map<PageOp, int> ops;
  int gone = 0;
  auto follow = [&] {
    while (true) {
      ASSERT_EQ(engine->log().read(place, words, 4096), 0u);
      if (words.empty()) break;
      StepLog::each(words, [&](const PackedEvent& event) {
        state.apply(event);
        const auto pages =
            event.kind == EventKind::kStep   ? unpacked<StepFields, StepEvent>(event.bytes).pages
            : event.kind == EventKind::kPlan ? unpacked<PlanFields, PlanEvent>(event.bytes).pages
                                             : std::vector<PageChange>();
        for (const PageChange& change : pages) ++ops[change.op];
        gone += event.kind == EventKind::kEnd;
      });
    }
  };
  while (engine->snapshot().step < kSteps) {
    random_turn(*engine, rng, streams);
    follow();
    ASSERT_NO_FATAL_FAILURE(expect_same(state, state_of(engine->moment())));
  }
  for (auto& stream : streams) stream->cancel();
  drain(*engine);
  follow();
  ASSERT_NO_FATAL_FAILURE(expect_same(state, state_of(engine->moment())));
  EXPECT_TRUE(state.sequences.empty());
  EXPECT_TRUE(state.tables.empty());
  for (PageOp op : {PageOp::kTake, PageOp::kAdopt, PageOp::kShare, PageOp::kCopy, PageOp::kName,
                    PageOp::kRelease, PageOp::kEvict})
    EXPECT_GT(ops[op], 0) << static_cast<int>(op);
  EXPECT_GT(engine->metrics().preemptions, 20u);
  EXPECT_GT(gone, 50);
}

INSTANTIATE_TEST_SUITE_P(All, Reduced, testing::Combine(testing::Bool(), testing::Values(0, 1)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) ? "Window" : "Full") +
                                  (std::get<1>(info.param) ? "Late" : "");
                         });

// The same at any moment, also between planning a step and committing it.
TEST(Trace, IsTrueWhileTheEngineRuns) {
  for (int delay : {0, 1}) {
    std::mt19937 rng(5 + delay);
    auto engine = make_engine(cramped(delay), delay == 1);
    engine->watch();
    const Engine::Moment from = engine->moment();
    TraceState state = state_of(from);
    StepLog::Place place = from.place;
    std::vector<std::uint64_t> words;
    ASSERT_TRUE(engine->start().ok());
    std::vector<std::shared_ptr<TokenStream>> streams;
    int between = 0;
    // On a busy machine it takes longer until a look falls between a plan and its commit.
    while (engine->snapshot().step < (between > 0 ? 1500u : 60'000u)) {
      if (auto made = engine->submit_choices(random_request(rng)); made.ok())
        streams.insert(streams.end(), made->begin(), made->end());
      if (rng() % 3 == 0) streams[rng() % streams.size()]->cancel();
      for (auto& stream : streams) {
        std::vector<TokenEvent> events;
        std::vector<TokenLogprob> top;
        stream->read(events, top);
      }
      const Engine::Moment to = engine->moment();
      while (state.seq < to.seq) {
        ASSERT_EQ(engine->log().read(place, words, 1), 0u);
        StepLog::each(words, [&](const PackedEvent& event) { state.apply(event); });
      }
      ASSERT_NO_FATAL_FAILURE(expect_same(state, state_of(to)));
      between += std::any_of(to.pages.tables.begin(), to.pages.tables.end(), [](const auto& table) {
        return static_cast<int>(table.pages.size()) > (table.length + 15) / 16;
      });
    }
    EXPECT_GT(between, 0) << "no look fell between a plan and its commit";
  }
}

// What nobody watched is said to be lost, once, and only until somebody watches.
TEST(Trace, SaysWhereChangesOfPagesAreNotTold) {
  auto engine = make_engine(options(2));
  StepLog::Place place;
  std::vector<std::uint64_t> words;
  auto lost = [&] {
    int out = 0;
    while (engine->log().read(place, words, SIZE_MAX), !words.empty())
      StepLog::each(words, [&](const PackedEvent& event) {
        if (event.kind == EventKind::kStep)
          out += unpacked<StepFields, StepEvent>(event.bytes).lost;
        if (event.kind == EventKind::kPlan)
          out += unpacked<PlanFields, PlanEvent>(event.bytes).lost;
      });
    return out;
  };
  auto one = *engine->submit(request(1, 40, 60));
  for (int i = 0; i < 40; ++i) engine->step();
  EXPECT_GT(lost(), 0);
  engine->watch();
  lost();
  drain(*engine);
  EXPECT_EQ(lost(), 0);
  // Who goes and comes back at once has missed nothing.
  engine->unwatch();
  auto two = *engine->submit(request(2, 40, 60));
  for (int i = 0; i < 40; ++i) engine->step();
  engine->watch();
  EXPECT_EQ(lost(), 0);
  drain(*engine);

  EngineOptions o = options(2);
  o.trace_pages = true;
  auto always = make_engine(o);
  auto three = *always->submit(request(1, 40, 60));
  drain(*always);
  engine = std::move(always);
  place = {};
  EXPECT_EQ(lost(), 0);
}

// Said when the engine is planned, before anything is loaded.
TEST(Trace, ALogThatHasNoRoomForAStepIsRefused) {
  EngineOptions o = options(4096);
  o.kv_tokens = kContext, o.trace_mib = 1;
  auto made = Engine::create(model(false), o);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(
      made.error().message,
      "MiB of the step log (--trace-mib): found 1, allowed 0 or from 2 on with 4096 sequences");
  o.sequences = 2000;
  EXPECT_TRUE(Engine::create(model(false), o).ok());
}

TEST(Trace, OffItKeepsNothingAndTheEngineRuns) {
  EngineOptions o = options(2);
  o.trace_mib = 0;
  auto engine = make_engine(o);
  engine->watch();
  auto stream = *engine->submit(request(1, 10, 30));
  drain(*engine);
  EXPECT_EQ(tokens_of(*stream).size(), 30u);
  EXPECT_FALSE(engine->log().on());
  EXPECT_TRUE(engine->steps_since(0).empty());
  const std::uint64_t first = 1;
  EXPECT_TRUE(engine->steps_of({&first, 1}).empty());
  EXPECT_EQ(engine->snapshot().step, 30u);
  EXPECT_EQ(engine->accounts().size(), 1u);
  EXPECT_EQ(engine->moment().seq, 0u);
}

TEST(Trace, AStepAllocatesNothingWhileItIsWatched) {
  if (options().backend != "cpu") GTEST_SKIP() << "steps are recorded at their second time";
  for (int delay : {0, 1}) {
    EngineOptions o = options(4);
    o.commit_delay = delay, o.threads = 1, o.step_tokens = 24;
    auto engine = make_engine(o, true);
    engine->watch();
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (int i = 0; i < 4; ++i) streams.push_back(*engine->submit(request(i, 100, 100)));
    engine->step();
    const std::size_t before = allocation_count();
    for (int i = 0; i < 80; ++i) engine->step();
    EXPECT_EQ(allocation_count(), before);
    const auto now = engine->moment();
    EXPECT_GT(now.seq, 90u) << "steps and plans";
    drain(*engine);
  }
}

}  // namespace
}  // namespace vitrine
