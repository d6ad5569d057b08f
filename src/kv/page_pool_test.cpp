#include "kv/page_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace vitrine {
namespace {

constexpr int P = 4;

PrefixKey key(std::uint64_t n) { return {n * 0x9e3779b97f4a7c15, n}; }

TEST(PagePool, HandsOutEveryPageOnce) {
  PagePool pool(5, P);
  std::set<PageId> seen;
  for (int i = 0; i < 5; ++i) seen.insert(pool.take());
  EXPECT_EQ(seen.size(), 5u);
  EXPECT_EQ(pool.take(), kNoPage);
  pool.release(3);
  EXPECT_EQ(pool.take(), 3);
}

TEST(PagePoolDeathTest, RefusesAPageThatIsNotHeld) {
  PagePool pool(2, P);
  PageId page = pool.take();
  pool.release(page);
  EXPECT_DEATH(pool.release(page), "not held");
}

TEST(PagePool, KeepsNamedPagesUntilRoomIsNeededOldestFirst) {
  PagePool pool(3, P);
  std::vector<std::int32_t> tokens{1, 2, 3, 4};
  PageId a = pool.take(), b = pool.take(), c = pool.take();
  pool.name(a, key(1), key(0), 0, tokens);
  pool.name(b, key(2), key(1), 1, tokens);
  pool.release(b);
  pool.release(a);
  pool.release(c);
  EXPECT_EQ(pool.free(), 1);
  EXPECT_EQ(pool.cached(), 2);
  EXPECT_EQ(pool.find(key(1)), a);
  EXPECT_EQ(pool.take(), c);
  EXPECT_EQ(pool.take(), b);  // released first
  EXPECT_EQ(pool.find(key(2)), kNoPage);
  EXPECT_TRUE(pool.evicted(key(2)));
  EXPECT_FALSE(pool.evicted(key(1)));
  pool.hold(a);
  EXPECT_EQ(pool.used(), 3);
  EXPECT_EQ(pool.take(), kNoPage);
  pool.hold(a);
  EXPECT_EQ(pool.shared(), 1);
  pool.release(a);
  EXPECT_EQ(pool.shared(), 0);
  EXPECT_EQ(pool.evictions(), 1u);
}

TEST(PagePool, FindsTheNearestPageAfterAParent) {
  PagePool pool(4, P);
  std::vector<std::vector<std::int32_t>> all{{1, 2, 3, 4}, {1, 2, 9, 9}, {7, 7, 7, 7}};
  std::vector<PageId> pages;
  for (std::size_t i = 0; i < all.size(); ++i) {
    pages.push_back(pool.take());
    pool.name(pages.back(), key(10 + i), key(0), 0, all[i]);
  }
  std::vector<std::int32_t> asked{1, 2, 9, 8};
  auto found = pool.nearest(key(0), asked);
  EXPECT_EQ(std::vector(found.begin(), found.end()), all[1]);
  EXPECT_TRUE(pool.nearest(key(5), asked).empty());
  // Evicting the middle one of three leaves the others.
  pool.release(pages[1]);
  pool.take(), pool.take();
  found = pool.nearest(key(0), asked);
  EXPECT_EQ(std::vector(found.begin(), found.end()), all[0]);
}

TEST(KeyTable, AgreesWithAMapUnderAnyEdits) {
  std::mt19937 rng(3);
  KeyTable table(100);
  std::map<std::uint64_t, std::int32_t> model;
  for (int i = 0; i < 20000; ++i) {
    // Few home slots, so that probe sequences overlap and wrap.
    std::uint64_t n = rng() % 300;
    PrefixKey k{n % 7 + 250, n};
    if (rng() % 2 && (model.size() < 100 || model.count(n))) {
      auto value = static_cast<std::int32_t>(rng() % 1000);
      table.put(k, value);
      model[n] = value;
    } else {
      table.erase(k);
      model.erase(n);
    }
    std::uint64_t probe = rng() % 300;
    auto it = model.find(probe);
    ASSERT_EQ(table.find({probe % 7 + 250, probe}), it == model.end() ? -1 : it->second);
    ASSERT_EQ(table.size(), static_cast<int>(model.size()));
  }
}

// The reference implementation's test vector for 128 bits of output: key 00..0f, input 00..0e.
TEST(PrefixHasher, IsSipHash128) {
  PrefixHasher hasher({0x0706050403020100, 0x0f0e0d0c0b0a0908});
  std::string input;
  for (char c = 0; c < 15; ++c) input += c;
  PrefixKey k = hasher.root(input);
  EXPECT_EQ(k.a, 0x11a8b03399e99354u);
  EXPECT_EQ(k.b, 0xd9c3cf970fec087eu);
}

TEST(PrefixHasher, DependsOnSaltParentTokensAndSecret) {
  PrefixHasher a, b;
  std::vector<std::int32_t> tokens{1, 2, 3}, other{1, 2, 4};
  EXPECT_FALSE(a.root("") == b.root(""));
  EXPECT_FALSE(a.root("") == a.root("x"));
  EXPECT_EQ(a.extend(a.root(""), tokens), a.extend(a.root(""), tokens));
  EXPECT_FALSE(a.extend(a.root(""), tokens) == a.extend(a.root("x"), tokens));
  EXPECT_FALSE(a.extend(a.root(""), tokens) == a.extend(a.root(""), other));
}

}  // namespace
}  // namespace vitrine
