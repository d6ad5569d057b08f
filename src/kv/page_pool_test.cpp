#include "kv/page_pool.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace vitrine {
namespace {

TEST(PagePool, HandsOutEveryPageOnce) {
  PagePool pool(5);
  std::set<PageId> seen;
  for (int i = 0; i < 5; ++i) seen.insert(pool.take());
  EXPECT_EQ(seen.size(), 5u);
  EXPECT_EQ(pool.take(), kNoPage);
  pool.give_back(3);
  EXPECT_EQ(pool.take(), 3);
}

TEST(PagePoolDeathTest, RefusesAPageThatIsNotHeld) {
  PagePool pool(2);
  PageId page = pool.take();
  pool.give_back(page);
  EXPECT_DEATH(pool.give_back(page), "not held");
}

TEST(BlockTable, WindowKeepsOnlyWhatCanBeSeen) {
  PagePool pool(8);
  BlockTable table(4, 6, 100);
  for (int length = 1; length <= 100; ++length) {
    table.grow(pool, length);
    table.release_behind_window(pool, length);
    // A row at position `length` sees length-5 .. length.
    for (int p = std::max(0, length - 5); p < length; ++p) EXPECT_GE(table.slot(p), 0);
    EXPECT_LE(table.held(), 3);
    EXPECT_EQ(table.held(), pool.used());
  }
  table.release_all(pool);
  EXPECT_EQ(pool.free(), 8);
}

TEST(BlockTable, AnyInterleavingGivesEveryPageBack) {
  std::mt19937 rng(7);
  PagePool pool(64);
  std::vector<BlockTable> tables;
  for (int i = 0; i < 6; ++i) tables.emplace_back(4, i % 2 ? 10 : 0, 400);
  std::vector<int> lengths(6, 0);
  for (int step = 0; step < 5000; ++step) {
    int i = static_cast<int>(rng() % 6), grow = static_cast<int>(rng() % 9);
    if (lengths[i] + grow > 400 || rng() % 20 == 0) {
      tables[i].release_all(pool);
      lengths[i] = 0;
    } else if (tables[i].missing(lengths[i] + grow) <= pool.free()) {
      tables[i].grow(pool, lengths[i] += grow);
      tables[i].release_behind_window(pool, lengths[i]);
    }
    std::set<PageId> held;
    int count = 0;
    for (const BlockTable& t : tables)
      for (PageId p : t.pages())
        if (p != kNoPage) held.insert(p), ++count;
    ASSERT_EQ(static_cast<int>(held.size()), count) << "a page is held twice";
    ASSERT_EQ(count, pool.used());
  }
}

}  // namespace
}  // namespace vitrine
