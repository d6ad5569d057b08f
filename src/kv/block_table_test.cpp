#include "kv/block_table.h"

#include <gtest/gtest.h>

#include <random>

namespace vitrine {
namespace {

constexpr int kPage = 4;

TEST(BlockTable, TakesPagesAsItGrowsAndGivesThemBack) {
  PagePool pool(8, kPage);
  BlockTable table(kPage, 0, 32);
  EXPECT_EQ(table.needed(pool, 0, 9), 3);
  EXPECT_EQ(table.grow(pool, 0, 9).to, kNoPage);
  EXPECT_EQ(table.held(), 3);
  EXPECT_EQ(table.needed(pool, 9, 12), 0) << "the last page has room";
  EXPECT_EQ(table.needed(pool, 9, 13), 1);
  EXPECT_EQ(table.slot(6), table.pages()[1] * kPage + 2);
  table.release_all(pool);
  EXPECT_EQ(table.held(), 0);
  EXPECT_EQ(pool.used(), 0);
}

TEST(BlockTable, CopiesASharedPageBeforeItIsWrittenTo) {
  PagePool pool(8, kPage);
  BlockTable first(kPage, 0, 32), second(kPage, 0, 32);
  first.grow(pool, 0, 6);
  second.share(pool, first);
  EXPECT_EQ(pool.used(), 2);
  EXPECT_EQ(second.needed(pool, 6, 7), 1) << "a copy of the page that position 6 lies in";
  PageCopy copy = second.grow(pool, 6, 7);
  EXPECT_EQ(copy.from, first.pages()[1]);
  EXPECT_EQ(copy.to, second.pages()[1]);
  EXPECT_NE(copy.from, copy.to);
  EXPECT_EQ(first.pages()[0], second.pages()[0]);
  // The other holder is alone with its page now and writes in place.
  EXPECT_EQ(first.grow(pool, 6, 7).to, kNoPage);
}

TEST(BlockTable, TruncateGivesBackThePagesBehindALength) {
  PagePool pool(8, kPage);
  BlockTable table(kPage, 0, 32);
  table.grow(pool, 0, 15);
  std::vector<PageId> before = table.pages();
  table.truncate(pool, 14);
  EXPECT_EQ(table.pages(), before) << "position 13 lies in the last page";
  table.truncate(pool, 8);
  EXPECT_EQ(table.held(), 2);
  EXPECT_EQ(pool.used(), 2);
  EXPECT_EQ(table.pages(), std::vector<PageId>(before.begin(), before.begin() + 2));
  table.grow(pool, 8, 9);
  EXPECT_EQ(table.held(), 3);
  table.truncate(pool, 0);
  EXPECT_EQ(table.held(), 0);
  EXPECT_EQ(pool.used(), 0);
}

TEST(BlockTable, TruncateLeavesThePagesOfOthersAlone) {
  PagePool pool(8, kPage);
  BlockTable first(kPage, 0, 32), second(kPage, 0, 32);
  first.grow(pool, 0, 12);
  second.share(pool, first);
  second.truncate(pool, 5);
  EXPECT_EQ(second.held(), 2);
  EXPECT_EQ(first.held(), 3);
  EXPECT_EQ(pool.used(), 3);
  EXPECT_EQ(pool.shared(), 2);
}

TEST(BlockTable, AWindowGivesBackWhatNoRowCanSee) {
  PagePool pool(8, kPage);
  BlockTable table(kPage, 6, 32);
  table.grow(pool, 0, 16);
  table.release_behind_window(pool, 14);  // sees 9 to 14
  EXPECT_EQ(table.pages()[1], kNoPage);
  EXPECT_NE(table.pages()[2], kNoPage);
  EXPECT_EQ(table.held(), 2);
  // What is behind the window does not come back, whatever is taken back.
  table.truncate(pool, 13);
  EXPECT_EQ(table.held(), 2);
  table.truncate(pool, 9);
  EXPECT_EQ(table.held(), 1);
  EXPECT_EQ(table.pages().size(), 3u);
  EXPECT_EQ(pool.used(), 1);
}

// Grow and take back at random: the table always covers its length and the pool agrees.
TEST(BlockTable, AnyOrderOfGrowthAndTruncationKeepsTheCounts) {
  std::mt19937 rng(3);
  for (int window : {0, 5, 11}) {
    PagePool pool(16, kPage);
    BlockTable table(kPage, window, 64);
    int length = 0, seen = 0;  // `seen`: no row before it runs again
    for (int i = 0; i < 2000; ++i) {
      if (rng() % 2 && length < 48) {
        int to = length + 1 + static_cast<int>(rng() % 12);
        if (table.needed(pool, length, to) > pool.available()) continue;
        table.grow(pool, length, to);
        length = to;
      } else {
        length -= static_cast<int>(rng() % (length - seen + 1));
        table.truncate(pool, length);
        if (rng() % 4 == 0) table.release_behind_window(pool, seen = length);
      }
      int held = 0;
      for (PageId page : table.pages()) held += page != kNoPage;
      ASSERT_EQ(held, table.held());
      ASSERT_EQ(held, pool.used());
      ASSERT_EQ(static_cast<int>(table.pages().size()), (length + kPage - 1) / kPage);
      for (int p = table.first_seen(seen) * kPage; p < length; ++p) ASSERT_GE(table.slot(p), 0);
      if (length >= 48 && rng() % 8 == 0) table.release_all(pool), length = seen = 0;
    }
  }
}

}  // namespace
}  // namespace vitrine
