#include "engine/fair_queue.h"

#include <gtest/gtest.h>

#include <map>

namespace vitrine {
namespace {

TEST(FairQueue, SharesTokensByWeightAndStarvesNobody) {
  FairQueue queue;
  Clock::time_point start = Clock::now();
  std::uint64_t id = 0;
  auto wait = [&](const char* tenant, double weight, int priority, Clock::time_point since) {
    auto s = std::make_unique<Sequence>();
    s->id = ++id;
    s->request.tenant = tenant, s->request.weight = weight, s->request.priority = priority;
    s->submitted = since;
    s->stream = std::make_shared<TokenStream>();
    queue.enter(*s);
    queue.push(std::move(s));
  };
  std::map<std::string, int> served;
  for (int i = 0; i < 40; ++i) wait("heavy", 3, 0, start), wait("light", 1, 0, start);
  for (int i = 0; i < 40; ++i) {
    Sequence* s = queue.best(start);
    queue.charge(*s, 100);
    ++served[s->request.tenant];
    queue.leave(*s);
    queue.pop(s);
  }
  EXPECT_NEAR(served["heavy"], 30, 1);
  EXPECT_NEAR(served["light"], 10, 1);
  // A newcomer goes first, but does not get all that others had before it came.
  queue = FairQueue();
  wait("old", 1, 0, start);
  queue.charge(*queue.best(start), 10000);
  wait("new", 1, 0, start);
  EXPECT_EQ(queue.best(start)->request.tenant, "new");
  int turns = 0;
  for (; queue.best(start)->request.tenant == "new"; ++turns) queue.charge(*queue.best(start), 100);
  EXPECT_LE(turns, FairQueue::kCredit / 100 + 1);
  // Low priority waits, but not for ever.
  queue = FairQueue();
  wait("a", 1, 3, start);
  wait("a", 1, 0, start + std::chrono::seconds(29));
  EXPECT_EQ(queue.best(start + std::chrono::seconds(29))->request.priority, 0);
  EXPECT_EQ(queue.best(start + std::chrono::seconds(31))->request.priority, 3);
}

// Seats by tenant, each with a sequence that waits.
struct Seats {
  Sequence* add(const char* tenant, int taken, double weight = 1, int priority = 0) {
    for (int i = 0; i <= taken; ++i) {
      auto s = std::make_unique<Sequence>();
      s->id = ++id;
      s->request.tenant = tenant, s->request.weight = weight, s->request.priority = priority;
      s->submitted = Clock::now();
      s->stream = std::make_shared<TokenStream>();
      queue.enter(*s);
      if (i < taken) queue.seat(*s);
      last = s.get();
      (i < taken ? seated : queue.waiting()).push_back(std::move(s));
    }
    return last;
  }
  FairQueue queue;
  std::vector<std::unique_ptr<Sequence>> seated;
  Sequence* last = nullptr;
  std::uint64_t id = 0;
};

TEST(FairQueue, ATenantBelowItsShareGetsTheNextSeat) {
  Seats s;
  Sequence* greedy = s.add("greedy", 3, 1, -1000);
  Sequence* polite = s.add("polite", 1);
  EXPECT_EQ(s.queue.best(Clock::now()), polite) << "whatever priority the other has";
  Sequence* heavy = s.add("heavy", 3, 4);
  EXPECT_EQ(s.queue.best(Clock::now()), heavy) << "3 seats for a weight of 4 are fewer than 1";
  Sequence* later = s.add("later", 0, 1, 5);
  EXPECT_NE(s.queue.best(Clock::now()), later) << "it asked to be behind";
  EXPECT_TRUE(s.queue.may_take(*polite, *greedy)) << "2 and 2 afterwards";
  EXPECT_FALSE(s.queue.may_take(*later, *greedy));
  EXPECT_FALSE(s.queue.may_take(*greedy, *polite));
  EXPECT_FALSE(s.queue.may_take(*greedy, *greedy));
  s.queue.check(7);
}

TEST(FairQueue, AtEqualSeatsPriorityIsATenantsOwnAffair) {
  Seats s;
  Sequence* greedy = s.add("greedy", 0, 1, -1000);
  Sequence* polite = s.add("polite", 0);
  s.queue.charge(*greedy, 10);
  EXPECT_EQ(s.queue.best(Clock::now()), polite) << "the other has had more";
  s.queue.charge(*polite, 20);
  EXPECT_EQ(s.queue.best(Clock::now()), greedy);
  Sequence* calm = s.add("greedy", 0, 1, 0);
  EXPECT_EQ(s.queue.best(Clock::now()), greedy) << "not " << calm->id;
}

TEST(FairQueue, SeatsNeverGoToAndFro) {
  for (double weight : {0.5, 1.0, 3.0})
    for (int a = 0; a < 9; ++a)
      for (int b = 0; b < 9; ++b) {
        Seats before, after;
        Sequence* x = before.add("a", a, weight);
        if (b == 0 || !before.queue.may_take(*x, *before.add("b", b))) continue;
        Sequence* y = after.add("a", a + 1, weight);
        EXPECT_FALSE(after.queue.may_take(*after.add("b", b - 1), *y)) << a << " " << b;
      }
}

TEST(FairQueue, AFullQueueStillHasEverybodysShare) {
  Seats s;
  auto room = [&](const char* tenant, int sequences, int mine = 0) {
    return s.queue.has_room({.tenant = tenant, .sequences = sequences, .mine = mine, .all = mine},
                            100);
  };
  EXPECT_TRUE(room("greedy", 128)) << "one request fits into an empty queue";
  for (int i = 0; i < 98; ++i) s.add("greedy", 0);
  EXPECT_TRUE(room("greedy", 2));
  EXPECT_FALSE(room("greedy", 3)) << "choices count";
  EXPECT_FALSE(room("greedy", 1, 2)) << "and so do those on their way";
  EXPECT_TRUE(room("polite", 1));
  for (int i = 0; i < 40; ++i) s.add("polite", 0);
  EXPECT_TRUE(room("polite", 10));
  EXPECT_FALSE(room("polite", 11)) << "half of 100";
  EXPECT_TRUE(room("third", 1));
}

}  // namespace
}  // namespace vitrine
