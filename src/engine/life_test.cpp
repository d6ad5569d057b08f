// A life is a partition: its parts follow each other from the first byte to the last and sum to the time
// between, to the nanosecond, and where steps say what a sequence did, it says the same.
#include <map>
#include <set>
#include <thread>

#include "base/process_clock.h"
#include "engine/kept_lives.h"
#include "engine/test_load.h"
#include "support/allocation_count.h"

namespace vitrine {
namespace {

using namespace test;
using namespace std::chrono_literals;

using Kinds = std::map<LifeKind, std::int64_t>;

// Checks that the parts tile [begin, end); the time of each kind.
Kinds expect_partition(const std::vector<LifePart>& life, std::int64_t begin, std::int64_t end) {
  Kinds out;
  std::int64_t at = begin;
  for (const LifePart& part : life) {
    EXPECT_EQ(part.start, at) << life_kind_name(part.kind);
    EXPECT_GT(part.ns, 0) << life_kind_name(part.kind);
    at += part.ns;
    out[part.kind] += part.ns;
  }
  EXPECT_EQ(at, end);
  return out;
}

bool is_summed(const std::vector<LifePart>& life) {
  return std::any_of(life.begin(), life.end(), [](const LifePart& p) { return p.sum_of > 0; });
}

// As the server leaves them when it submits.
void stamp(Request& r, std::mt19937& rng) {
  Stamps& t = r.stamps;
  for (std::int64_t* each :
       {&t.received, &t.body, &t.taken, &t.parsed, &t.templated, &t.compiled, &t.tokenized})
    // A completion has no template, and few requests a constraint.
    if (each == &t.received || rng() % 3) *each = process_ns();
}

class Life : public testing::TestWithParam<std::tuple<bool, int>> {
 protected:
  struct Tile {
    std::int64_t from, planned, end;
    LifeKind kind;
  };
  void SetUp() override {
    auto [window, delay] = GetParam();
    rng.seed(300 + window * 2 + delay);
    EngineOptions o = cramped(delay);
    o.max_queue = 12;
    o.hold_timeout_ms = 20;
    engine = make_engine(o, window);
  }
  void submit() {
    Request r = random_request(rng);
    stamp(r, rng);
    auto written = std::make_shared<Written>();
    r.written = written;
    if (rng() % 6 == 0) r.timeout = std::chrono::milliseconds(1 + rng() % 30);
    if (rng() % 6 == 0) r.allow = static_cast<int>(rng() % 4);
    auto made = engine->submit_choices(r);
    if (!made.ok()) return void(++refused);
    for (auto& stream : *made) {
      answers[stream->id()] = written;
      streams.push_back(std::move(stream));
    }
  }
  void turn() {
    switch (rng() % 10) {
      case 0:
        submit();
        break;
      case 1:
        if (!streams.empty() && rng() % 3 == 0) streams[rng() % streams.size()]->cancel();
        break;
      case 2:
        for (auto& stream : streams) {
          if (rng() % 4) {
            std::vector<TokenEvent> events;
            std::vector<TokenLogprob> top;
            stream->read(events, top);
          }
          if (stream->held() && rng() % 2) rng() % 2 ? stream->allow(2) : stream->release();
        }
        break;
      default:
        engine->step();
    }
  }
  void look_at_steps() {
    for (const StepRecord& r : engine->steps_since(next)) {
      next = r.step + 1;
      last_end = r.wall_from_ns + r.wall_ns;
      for (const StepEntry& e : r.entries)
        tiles[e.sequence].push_back(
            {r.wall_from_ns, r.start_ns + r.plan_ns, r.wall_from_ns + r.wall_ns,
             e.phase == Phase::kPrefill ? LifeKind::kPrefill : LifeKind::kDecode});
    }
  }
  // Of one that has ended.
  void check(const Account& a) {
    const Stamps& t = a.stamps;
    // Beams that are not returned have no stream.
    Written& written = *answers[answers.contains(a.id) ? a.id : a.beam_of];
    if (rng() % 4) written.last_ns = process_ns();  // the others' clients had left
    written.done = true;
    const std::vector<LifePart> life = life_of(a, process_ns());
    const std::int64_t end = a.written_until(0);
    ASSERT_GE(end, t.ended);
    Kinds all = expect_partition(life, t.received, end);
    EXPECT_EQ(all[LifeKind::kWrite], end - t.ended);
    for (const LifePart& part : life) {
      seen.insert(part.kind);
      causes.insert(part.cause);
    }
    summed += is_summed(life);
    // What the steps say.
    Kinds stepped;
    for (const Tile& tile : tiles[a.id]) {
      std::int64_t from = std::max(tile.from, t.admitted);
      const std::int64_t to = std::min(tile.end, t.ended);
      // It got its seat back when this step was planned.
      for (const LifePart& part : life)
        if (a.preemptions > 0 && part.kind == LifeKind::kPrefill && part.start > from &&
            part.start <= tile.planned)
          from = part.start;
      if (from >= to) continue;  // it had ended, and the step was dropped
      stepped[tile.kind] += to - from;
      if (is_summed(life)) continue;
      for (const LifePart& part : life)
        if (part.start < to && part.start + part.ns > from) {
          EXPECT_EQ(part.kind, tile.kind) << a.id << ": " << life_kind_name(part.kind);
        }
    }
    if (!is_summed(life)) {  // or it is not known when it got its seat back
      EXPECT_EQ(stepped[LifeKind::kPrefill], all[LifeKind::kPrefill]) << a.id;
      EXPECT_EQ(stepped[LifeKind::kDecode], all[LifeKind::kDecode]) << a.id;
    }
    if (t.admitted == 0) {
      EXPECT_EQ(all[LifeKind::kPrefill] + all[LifeKind::kDecode] + all[LifeKind::kSatOut], 0);
    } else if (a.choice == 0) {
      EXPECT_EQ(all[LifeKind::kQueue], t.admitted - t.submitted) << a.id;
    }
    EXPECT_TRUE(a.preemptions > 0 || !all.contains(LifeKind::kPreempted)) << a.id;
    for (const LifePart& part : life)
      if (part.kind == LifeKind::kPreempted && part.sum_of == 0) {
        EXPECT_NE(part.by, 0u);
      }
    ++checked;
  }

  std::mt19937 rng;
  std::unique_ptr<Engine> engine;
  std::vector<std::shared_ptr<TokenStream>> streams;
  std::map<std::uint64_t, std::shared_ptr<Written>> answers;
  std::map<std::uint64_t, std::vector<Tile>> tiles;
  std::set<LifeKind> seen;
  std::set<LifeCause> causes;
  std::uint64_t next = 0;
  std::int64_t last_end = 0;
  int checked = 0, refused = 0, summed = 0;
};

TEST_P(Life, IsAPartition) {
  std::set<std::uint64_t> done;
  // The last step of one that has ended may still be on its way.
  const auto check_ended = [&](bool all) {
    look_at_steps();
    for (const Account& a : engine->accounts())
      if ((all || a.stamps.ended < last_end) && done.insert(a.id).second) check(a);
  };
  while (next < 2500) {
    for (int i = 0; i < 200; ++i) turn();
    check_ended(false);
    // Of those that have not ended: until now.
    const std::int64_t now = process_ns();
    const Snapshot s = engine->snapshot();
    for (const auto* list : {&s.running, &s.waiting})
      for (const SequenceStats& q : *list) {
        const auto life = life_of(q.account, process_ns());
        ASSERT_FALSE(life.empty());
        const LifePart& last = life.back();
        EXPECT_GE(last.start + last.ns, now);
        expect_partition(life, q.account.stamps.received, last.start + last.ns);
      }
  }
  for (auto& stream : streams) stream->cancel();
  drain(*engine);
  check_ended(true);
  EXPECT_GT(checked, 200);
  EXPECT_GT(refused, 0);
  for (LifeKind kind : {LifeKind::kRead, LifeKind::kParse, LifeKind::kTemplate, LifeKind::kTokenize,
                        LifeKind::kCompile, LifeKind::kHandoff, LifeKind::kQueue,
                        LifeKind::kPrefill, LifeKind::kDecode, LifeKind::kSatOut,
                        LifeKind::kPreempted, LifeKind::kPaused, LifeKind::kBetween})
    EXPECT_TRUE(seen.contains(kind)) << life_kind_name(kind) << " never came";
  for (LifeCause cause :
       {LifeCause::kStep, LifeCause::kBehind, LifeCause::kSeats, LifeCause::kPages,
        LifeCause::kPrompt, LifeCause::kBudget, LifeCause::kReader, LifeCause::kHeld,
        LifeCause::kAgain, LifeCause::kWorker, LifeCause::kEngine})
    EXPECT_TRUE(causes.contains(cause)) << life_cause_name(cause) << " never came";
}

INSTANTIATE_TEST_SUITE_P(All, Life, testing::Combine(testing::Bool(), testing::Values(0, 1)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) ? "Window" : "Full") +
                                  (std::get<1>(info.param) ? "Late" : "");
                         });

TEST(LifeOf, OneThatWasRefused) {
  Account a;
  a.stamps.received = 100, a.stamps.body = 150, a.stamps.taken = 160, a.stamps.parsed = 190;
  auto written = std::make_shared<Written>();
  a.written = written;
  Kinds so_far = expect_partition(life_of(a, 200), 100, 200);
  EXPECT_EQ(so_far[LifeKind::kWrite], 10);
  written->last_ns = 230, written->done = true;
  Kinds all = expect_partition(life_of(a, 999), 100, 230);
  EXPECT_EQ(all, (Kinds{{LifeKind::kRead, 50},
                        {LifeKind::kHandoff, 10},
                        {LifeKind::kParse, 30},
                        {LifeKind::kWrite, 40}}));
}

Account account_of(const Engine& engine, std::uint64_t id) {
  for (const Account& a : engine.accounts())
    if (a.id == id) return a;
  ADD_FAILURE() << "no account " << id;
  return {};
}

TEST(LifeOf, ThoseThatEndInTheQueue) {
  auto engine = make_engine(options(1));
  auto one = *engine->submit(request(1, 40, 200));
  engine->step();
  auto cancelled = *engine->submit(request(2, 10, 5));
  Request late = request(3, 10, 5);
  late.timeout = 1ms;
  auto timed_out = *engine->submit(late);
  engine->step();
  cancelled->cancel();
  std::this_thread::sleep_for(2ms);
  engine->step();
  const Account first = account_of(*engine, cancelled->id()), second = account_of(*engine, 3);
  EXPECT_EQ(first.reason, FinishReason::kCancelled);
  EXPECT_EQ(second.reason, FinishReason::kTimeout);
  for (const Account& a : {first, second}) {
    const auto life = life_of(a, process_ns());
    Kinds all = expect_partition(life, a.stamps.submitted, a.stamps.ended);
    EXPECT_EQ(all.size(), 1u);
    EXPECT_EQ(life.front().cause, LifeCause::kStep);
    EXPECT_EQ(life.back().cause, a.id == 2 ? LifeCause::kSeats : LifeCause::kBehind);
  }
  EXPECT_EQ(life_of(second, 0).back().by, 2u);
  one->cancel();
  drain(*engine);
}

// More turns than are kept.
TEST(LifeOf, AReaderThatStopsAtEveryToken) {
  auto engine = make_engine(options(1));
  Request r = request(1, 10, 100);
  r.max_backlog = 1;
  auto stream = *engine->submit(r);
  std::vector<TokenEvent> events;
  std::vector<TokenLogprob> top;
  while (!stream->finished()) {
    for (int i = 0; i < 3; ++i) engine->step();
    stream->read(events, top);
  }
  const Account a = account_of(*engine, 1);
  const auto life = life_of(a, 0);
  ASSERT_TRUE(is_summed(life));
  EXPECT_LT(life.size(), LifeBook::kMostTurns + kLifeKinds);
  Kinds all = expect_partition(life, a.stamps.submitted, a.stamps.ended);
  std::int64_t decode = 0;
  for (const OwnStep& own : engine->steps_of({&a.id, 1})) {
    const StepRecord& s = own.record;
    if (s.entries[0].phase == Phase::kDecode)
      decode += std::min(s.wall_from_ns + s.wall_ns, a.stamps.ended) - s.wall_from_ns;
  }
  EXPECT_EQ(all[LifeKind::kDecode], decode);
  EXPECT_GT(all[LifeKind::kPaused], 0);
}

TEST(LifeOf, APreemptedOneKnowsByWhom) {
  EngineOptions o = options(2);
  o.kv_tokens = kContext;
  auto engine = make_engine(o);
  auto one = *engine->submit(request(1, 100, 100)), two = *engine->submit(request(2, 100, 100));
  drain(*engine);
  const Account a = account_of(*engine, 2);
  ASSERT_GT(a.preemptions, 0);
  bool again = false;
  for (const LifePart& part : life_of(a, 0)) {
    if (part.kind == LifeKind::kPreempted) {
      EXPECT_EQ(part.by, 1u);
    }
    again |= part.kind == LifeKind::kPrefill && part.cause == LifeCause::kAgain;
  }
  EXPECT_TRUE(again);
}

// However often it is preempted or held.
TEST(Life, TakesNoMoreThanItsLineOfThePlan) {
  const std::size_t before = allocated_bytes();
  LifeBook book;
  book.begin(1);
  for (int i = 0; i < 1000; ++i)
    book.turn(10 + i, i % 2 == 0 ? LifeKind::kPrefill : LifeKind::kDecode);
  EXPECT_LE(static_cast<std::int64_t>(allocated_bytes() - before + sizeof(Account)),
            kLivesBytesMost / kKeptAccounts);
}

}  // namespace
}  // namespace vitrine
