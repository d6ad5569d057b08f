#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>

namespace vitrine {
namespace {

TEST(ThreadPool, RunsEveryItemOnceInManyShortJobs) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::vector<int> counts(97);
    for (int round = 0; round < 2000; ++round) {
      int items = round % 97 + 1;
      pool.run(items, [&](std::int64_t i, int worker) {
        ASSERT_LT(worker, threads);
        ++counts[i];
      });
    }
    int total = 0;
    for (int round = 0; round < 2000; ++round) total += round % 97 + 1;
    int sum = 0;
    for (int c : counts) sum += c;
    EXPECT_EQ(sum, total);
  }
}

TEST(ThreadPool, WakesWorkersThatWentToSleep) {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::atomic<int> sum{0};
    pool.run(10, [&](std::int64_t i, int) { sum += static_cast<int>(i); });
    EXPECT_EQ(sum.load(), 45);
  }
}

TEST(ThreadPool, RangesCoverEverything) {
  ThreadPool pool(2);
  std::vector<int> hits(1001);
  pool.run_ranges(1001, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) ++hits[i];
  });
  for (int h : hits) EXPECT_EQ(h, 1);
}

}  // namespace
}  // namespace vitrine
