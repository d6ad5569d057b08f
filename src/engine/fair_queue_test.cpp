#include "engine/fair_queue.h"

#include <gtest/gtest.h>

#include <map>

namespace vitrine {
namespace {

TEST(FairQueue, SharesTokensByWeightAndStarvesNobody) {
  FairQueue queue(100);
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
  // A newcomer does not get what others had before it came.
  wait("new", 1, 0, start);
  queue.charge(*queue.best(start), 1);
  int before_light = 0;
  for (int i = 0; i < 5; ++i) {
    Sequence* s = queue.best(start);
    before_light += s->request.tenant == "new";
    queue.charge(*s, 100);
  }
  EXPECT_LE(before_light, 2);
  // Low priority waits, but not for ever.
  FairQueue aged(10);
  std::swap(queue, aged);
  wait("a", 1, 3, start);
  wait("a", 1, 0, start + std::chrono::seconds(29));
  EXPECT_EQ(queue.best(start + std::chrono::seconds(29))->request.priority, 0);
  EXPECT_EQ(queue.best(start + std::chrono::seconds(31))->request.priority, 3);
}

}  // namespace
}  // namespace vitrine
