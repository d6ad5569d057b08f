// What a step's record says adds up: nothing that is shown of a step is lost or counted twice, whatever
// is forked, preempted, cancelled or committed late.
#include <set>

#include "base/process_clock.h"
#include "engine/test_load.h"

namespace vitrine {
namespace {

using namespace test;

class Conservation : public testing::TestWithParam<std::tuple<bool, int>> {
 protected:
  static constexpr std::uint64_t kSteps = 2500;  // of each of the six
  static constexpr int kDrafted = 2;             // in the place of a delay: with a draft model

  void SetUp() override {
    auto [window, delay] = GetParam();
    rng.seed(100 + window * 2 + delay);
    EngineOptions o = cramped(delay == kDrafted ? 0 : delay);
    if (delay == kDrafted) {
      o.spec = SpecMode::kDraft, o.spec_always = true;
      o.draft.file = model(!window);
    }
    engine = make_engine(o, window);
  }
  // Something arrives, leaves, reads, or a step.
  void turn() { idled |= !random_turn(*engine, rng, streams); }

  // Every page is free, cached or used, and a used one is in a table for each of its holders.
  void expect_pages_add_up() {
    const Snapshot s = engine->snapshot();
    const PageMap map = engine->page_map();
    for (std::size_t g = 0; g < s.pools.size(); ++g) {
      const PoolStats& p = s.pools[g];
      const std::string& states = map.groups[g].pages;
      ASSERT_EQ(p.total, p.free + p.cached + p.used);
      ASSERT_EQ(std::count(states.begin(), states.end(), '.'), p.free);
      ASSERT_EQ(std::count(states.begin(), states.end(), 'c'), p.cached);
      std::vector<int> holders(states.size());
      for (const PageMap::Table& t : map.tables)
        for (std::int32_t page : t.pages)
          if (t.group == static_cast<int>(g) && page >= 0) ++holders[page];
      int shared = 0;
      for (std::size_t page = 0; page < states.size(); ++page) {
        ASSERT_EQ(holders[page] > 0, states[page] == 'u') << page;
        shared += holders[page] > 1;
      }
      ASSERT_EQ(shared, p.shared);
    }
  }

  std::mt19937 rng;
  std::unique_ptr<Engine> engine;
  std::vector<std::shared_ptr<TokenStream>> streams;
  bool idled = false;  // there was nothing to do, since the last step
};

TEST_P(Conservation, EntriesSumToTheStep) {
  std::uint64_t next = 0;
  std::int64_t end_before = 0;
  int blocked = 0, forks = 0;
  std::set<std::uint64_t> seen;
  while (next < kSteps) {
    turn();
    for (const StepRecord& r : engine->steps_since(next)) {
      ASSERT_EQ(r.step, next);
      next = r.step + 1;
      int prefill = 0, decode = 0;
      double flops = 0, read = 0, written = 0;
      std::int64_t shares = r.padding_share_ns;
      std::set<int> slots;
      std::set<std::uint64_t> sequences;
      for (const StepEntry& e : r.entries) {
        (e.phase == Phase::kPrefill ? prefill : decode) += e.tokens;
        flops += e.flops, read += e.kv_read_bytes, written += e.kv_write_bytes;
        shares += e.share_ns;
        EXPECT_GE(e.share_ns, 0);
        EXPECT_GE(e.slot, 0);
        EXPECT_LT(e.slot, 6);
        EXPECT_TRUE(slots.insert(e.slot).second) << "two sequences at one place";
        EXPECT_TRUE(sequences.insert(e.sequence).second);
        EXPECT_TRUE(e.tokens > 0 ? e.flops > 0 && e.kv_write_bytes > 0 : e.sampled);
        forks += e.tokens == 0;
        seen.insert(e.sequence);
      }
      ASSERT_EQ(prefill, r.prefill_tokens);
      ASSERT_EQ(decode, r.decode_tokens);
      ASSERT_EQ(shares, r.wall_ns);
      ASSERT_EQ(flops, r.flops);
      ASSERT_EQ(static_cast<std::int64_t>(read), r.kv_read_bytes);
      ASSERT_EQ(static_cast<std::int64_t>(written), r.kv_write_bytes);
      // Steps tile the time in which there was work.
      ASSERT_GE(r.wall_ns, r.commit_ns);
      const std::int64_t end = std::max(end_before, r.start_ns) + r.wall_ns;
      ASSERT_GE(end, end_before);
      end_before = end;
      if (r.blocked.reason == Wait::kPages) {
        ASSERT_GT(r.blocked.needed, r.blocked.available);
      }
      ASSERT_EQ(r.blocked.reason == Wait::kNone, r.blocked.sequence == 0);
      blocked += r.blocked.reason != Wait::kNone;
    }
    expect_pages_add_up();
  }
  EXPECT_GT(blocked, 100) << "nobody ever waited: the test shows little";
  EXPECT_GT(forks, 2);
  EXPECT_GT(engine->metrics().preemptions, 20u);
  for (auto& stream : streams) stream->cancel();  // some have a reader that is behind
  drain(*engine);
  // The account of a request is the sum over its steps.
  for (const Account& a : engine->accounts()) {
    auto steps = engine->steps_of({&a.id, 1});
    if (static_cast<int>(steps.size()) != a.steps) continue;  // some are no longer kept
    double flops = 0, written = 0;
    std::int64_t shares = 0;
    for (const OwnStep& own : steps)
      for (const StepEntry& e : own.record.entries) {
        EXPECT_EQ(e.sequence, a.id);
        flops += e.flops, written += e.kv_write_bytes, shares += e.share_ns;
      }
    EXPECT_EQ(shares, a.input_ns + a.output_ns + a.wasted_ns);
    EXPECT_TRUE(a.wasted_ns == 0 || a.recomputed_tokens > 0);
    if (!steps.empty()) {
      EXPECT_EQ(a.first_step, steps.front().record.step);
      EXPECT_EQ(a.last_step, steps.back().record.step);
    }
    const Stamps& t = a.stamps;
    EXPECT_LE(t.submitted, t.ended);
    if (t.admitted == 0) continue;  // it never ran
    EXPECT_LE(t.submitted, t.admitted);
    EXPECT_LE(t.admitted, a.usage.completion_tokens > 0 ? t.first_token : t.ended);
    EXPECT_LE(t.first_token, t.ended);
    EXPECT_DOUBLE_EQ(flops, a.flops);
    EXPECT_DOUBLE_EQ(written, a.kv_write_bytes);
  }
}

// Over any window: the shares of all requests, those of padding, and the time without work are the time of the
// engine's thread.
TEST_P(Conservation, SharesAndIdleTimeAreTheThreadsTime) {
  // Up to the end of each step, all since the first began.
  struct Sums {
    std::int64_t end = 0, shares = 0, padding = 0, idle = 0;
  };
  std::vector<Sums> sums;
  const std::int64_t begin = process_ns();
  int rests = 0;
  auto take = [&] {
    for (const StepRecord& r : engine->steps_since(sums.size())) {
      ASSERT_EQ(r.step, sums.size());
      Sums now = sums.empty() ? Sums{.end = r.wall_from_ns} : sums.back();
      const std::int64_t idle = r.wall_from_ns - now.end;
      // Between two steps there is nobody's time only where there was nothing to do.
      if (!sums.empty()) {
        ASSERT_EQ(idle > 0, idled) << r.step;
      }
      idled = false;
      now.idle += idle, now.padding += r.padding_share_ns;
      for (const StepEntry& e : r.entries) now.shares += e.share_ns;
      now.end = r.wall_from_ns + r.wall_ns;
      sums.push_back(now);
    }
  };
  while (sums.size() < kSteps) {
    if (rng() % 100 == 0) {
      for (auto& stream : streams) stream->cancel();
      drain(*engine);
      take();
      idled = true;
      ++rests;
    }
    turn();
    ASSERT_NO_FATAL_FAILURE(take());
  }
  for (auto& stream : streams) stream->cancel();
  drain(*engine);
  ASSERT_NO_FATAL_FAILURE(take());
  for (int i = 0; i < 1000; ++i) {
    const Sums &a = sums[rng() % sums.size()], &b = sums[rng() % sums.size()];
    ASSERT_EQ(b.shares - a.shares + b.padding - a.padding + b.idle - a.idle, b.end - a.end);
  }
  EXPECT_GT(sums.front().end, begin);
  EXPECT_LE(sums.back().end, process_ns());
  EXPECT_GT(rests, 5);
  EXPECT_GT(sums.back().idle, 0);
}

constexpr const char* kSuffixes[] = {"", "Late", "Drafted"};

INSTANTIATE_TEST_SUITE_P(All, Conservation,
                         testing::Combine(testing::Bool(), testing::Values(0, 1, 2)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) ? "Window" : "Full") +
                                  kSuffixes[std::get<1>(info.param)];
                         });

TEST(Waiting, IsExplained) {
  EngineOptions o = options(2);
  o.kv_tokens = kContext;
  auto engine = make_engine(o);
  auto one = *engine->submit(request(1, 40, 60));
  engine->step();
  // There is a seat, but no room for a prompt as long as the context.
  auto large = *engine->submit(request(2, kContext - 8, 4));
  engine->step();
  Snapshot s = engine->snapshot();
  EXPECT_EQ(s.blocked.reason, Wait::kPages);
  EXPECT_EQ(s.blocked.sequence, 2u);
  EXPECT_GT(s.blocked.needed, s.blocked.available);
  // Behind it a small one waits too, for the same.
  auto small = *engine->submit(request(3, 5, 4));
  engine->step();
  EXPECT_EQ(engine->snapshot().blocked.sequence, 2u);
  drain(*engine);
  EXPECT_EQ(engine->snapshot().blocked.reason, Wait::kNone);
  const QueueAccount& q = large->wait().account.queue;
  EXPECT_EQ(q.reason, Wait::kPages);
  EXPECT_GT(q.first_ms, 0);
  EXPECT_LE(q.first_ms, large->wait().account.timings.queue_ms);
  EXPECT_EQ(one->wait().account.queue.reason, Wait::kNone);

  auto seats = make_engine(options(1));
  auto first = *seats->submit(request(1, 10, 20)), second = *seats->submit(request(2, 10, 2));
  seats->step();
  EXPECT_EQ(seats->snapshot().blocked.reason, Wait::kSeats);
  drain(*seats);
  EXPECT_EQ(second->wait().account.queue.reason, Wait::kSeats);
  o = options(2);
  o.policy = Policy::kStatic;
  auto batches = make_engine(o);
  auto a = *batches->submit(request(1, 10, 20)), b = *batches->submit(request(2, 10, 20));
  batches->step();
  auto c = *batches->submit(request(3, 10, 2));
  batches->step();
  EXPECT_EQ(batches->snapshot().blocked.reason, Wait::kPolicy);
}

// What some are told of their steps grows with them, not with the square of how many there are.
TEST(Steps, OfSomeHaveTheirEntriesAndTheLargest) {
  constexpr int kMany = 24;
  auto engine = make_engine(options(kMany));
  std::vector<std::shared_ptr<TokenStream>> streams;
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < kMany; ++i) {
    streams.push_back(*engine->submit(request(i + 1, 4 + i, 8)));
    if (i % 8 == 0) ids.push_back(streams.back()->id());
  }
  drain(*engine);
  const auto all = engine->steps_since(0);
  const auto some = engine->steps_of(ids);
  std::size_t at = 0, crowded = 0;
  for (const StepRecord& whole : all) {
    std::vector<std::pair<int, std::uint64_t>> rows, largest;
    std::vector<std::uint64_t> theirs, told;
    for (const StepEntry& e : whole.entries) {
      rows.emplace_back(-e.tokens, e.sequence);
      if (std::binary_search(ids.begin(), ids.end(), e.sequence)) theirs.push_back(e.sequence);
    }
    if (theirs.empty()) continue;
    ASSERT_LT(at, some.size());
    const OwnStep& own = some[at++];
    EXPECT_EQ(own.record.step, whole.step);
    EXPECT_EQ(own.sequences, whole.entries.size());
    for (const StepEntry& e : own.record.entries) told.push_back(e.sequence);
    EXPECT_EQ(told, theirs);
    ASSERT_EQ(own.largest.size(), std::min(own.sequences, OwnStep::kMostLargest));
    for (const StepEntry& e : own.largest) largest.emplace_back(-e.tokens, e.sequence);
    std::sort(rows.begin(), rows.end());
    EXPECT_TRUE(std::equal(largest.begin(), largest.end(), rows.begin()));
    crowded += own.sequences > own.largest.size();
  }
  EXPECT_EQ(at, some.size());
  EXPECT_GT(crowded, 0u);
}

TEST(Steps, AreHandedOutFromANumberOn) {
  auto engine = make_engine(options(2));
  auto stream = *engine->submit(request(1, 10, 30));
  drain(*engine);
  const auto all = engine->steps_since(0);
  ASSERT_EQ(all.size(), 30u);
  const auto some = engine->steps_since(10, 5);
  ASSERT_EQ(some.size(), 5u);
  EXPECT_EQ(some.front().step, 10u);
  EXPECT_TRUE(engine->steps_since(30).empty());
  EXPECT_TRUE(engine->steps_since(UINT64_MAX).empty());
  const std::uint64_t ids[] = {1, 2};
  EXPECT_EQ(engine->steps_of(ids).size(), 30u);
  EXPECT_TRUE(engine->steps_of({ids + 1, 1}).empty());
  // Without a break they follow each other: ends are where the next begins.
  for (std::size_t i = 1; i < all.size(); ++i)
    EXPECT_GE(all[i].wall_ns, all[i].plan_ns + all[i].forward_ns + all[i].commit_ns);
}

}  // namespace
}  // namespace vitrine
