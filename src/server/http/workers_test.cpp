#include "server/http/workers.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace vitrine {
namespace {

// Threads that work until the object ends.
class Crew {
 public:
  Crew(Workers& workers, int count) : workers_(workers) {
    workers.set_threads(count);
    for (int i = 0; i < count; ++i) threads_.emplace_back([&workers] { workers.run(); });
  }
  ~Crew() {
    workers_.close();
    for (auto& thread : threads_) thread.join();
  }

 private:
  Workers& workers_;
  std::vector<std::thread> threads_;
};

TEST(Workers, AKeyWithMuchWorkDelaysItself) {
  Workers workers;
  std::promise<void> begun, go;
  std::string order;
  {
    Crew crew(workers, 1);
    workers.post("greedy", 1, [&] {
      begun.set_value();
      go.get_future().wait();
      order += 'g';
    });
    begun.get_future().wait();
    for (int i = 0; i < 200; ++i) workers.post("greedy", 1, [&order] { order += 'g'; });
    workers.post("polite", 1, [&order] { order += 'p'; });
    go.set_value();
  }
  ASSERT_EQ(order.size(), 202u);
  EXPECT_LE(order.find('p'), 2u) << order;
}

TEST(Workers, WhoHasWaitedBeforeIsNotRepaid) {
  Workers workers;
  std::string order;
  auto job = [&order](char c) {
    return [&order, c] {
      order += c;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    };
  };
  std::promise<void> begun, go;
  {
    Crew crew(workers, 1);
    workers.post("a", 1, [&] {
      begun.set_value();
      go.get_future().wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    });
    begun.get_future().wait();
    for (int i = 0; i < 8; ++i) workers.post("a", 1, job('a')), workers.post("b", 1, job('b'));
    go.set_value();
  }
  // By turns from where both wait, but for what "a" has used since.
  EXPECT_EQ(order.size(), 16u);
  EXPECT_EQ(order[0], 'b');
  EXPECT_LT(order.find('a'), 16u);
}

TEST(Workers, AKeyLeavesAThreadToOthers) {
  Workers workers;
  std::promise<void> first, go, other;
  std::atomic<bool> second = false;
  Crew crew(workers, 2);  // ends before what its jobs use
  workers.post("greedy", 1, [&] {
    first.set_value();
    go.get_future().wait();
  });
  workers.post("greedy", 1, [&] { second = true; });
  first.get_future().wait();
  workers.post("polite", 1, [&] { other.set_value(); });
  other.get_future().wait();
  EXPECT_FALSE(second);
  go.set_value();
}

TEST(Workers, WithoutKeysAllThreadsWork) {
  Workers workers;
  std::promise<void> second;
  Crew crew(workers, 2);
  workers.post("", 1, [&] { second.get_future().wait(); });
  workers.post("", 1, [&] { second.set_value(); });
}

TEST(Workers, WhatWaitsAtTheEndIsDone) {
  Workers workers;
  std::atomic<int> done = 0;
  for (int i = 0; i < 20; ++i) workers.post(i % 2 == 0 ? "a" : "b", 2, [&done] { ++done; });
  { Crew crew(workers, 3); }
  EXPECT_EQ(done, 20);
}

}  // namespace
}  // namespace vitrine
