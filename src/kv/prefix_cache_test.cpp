#include "kv/prefix_cache.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace vitrine {
namespace {

constexpr int P = 4;

struct Text {
  std::vector<std::int32_t> tokens;
  PrefixKey root;
  std::vector<PrefixKey> keys;
};

Text text(const PrefixHasher& hasher, std::vector<std::int32_t> tokens) {
  Text t{std::move(tokens), hasher.root(""), {}};
  for (std::size_t i = 0; (i + 1) * P <= t.tokens.size(); ++i)
    t.keys.push_back(
        hasher.extend(i == 0 ? t.root : t.keys.back(), std::span(t.tokens).subspan(i * P, P)));
  return t;
}

std::vector<std::int32_t> counting(int n, int from = 0) {
  std::vector<std::int32_t> out(n);
  for (int i = 0; i < n; ++i) out[i] = from + i;
  return out;
}

// Computes the whole text in tables of its own, names its pages and releases them.
void leave(PrefixCache& cache, const std::vector<int>& windows, const Text& t) {
  int n = static_cast<int>(t.tokens.size());
  for (int g = 0; g < cache.groups(); ++g) {
    BlockTable table(P, windows[g], n);
    for (int i = 0; i < n; ++i) {
      table.grow(cache.pool(g), i, i + 1);
      if ((i + 1) % P == 0) {
        std::size_t page = i / P;
        cache.pool(g).name(table.pages()[page], t.keys[page], page == 0 ? t.root : t.keys[page - 1],
                           static_cast<int>(page), std::span(t.tokens).subspan(page * P, P));
      }
      table.release_behind_window(cache.pool(g), i + 1);
    }
    table.release_all(cache.pool(g));
  }
}

TEST(BlockTable, WindowKeepsOnlyWhatCanBeSeen) {
  PagePool pool(8, P);
  BlockTable table(P, 6, 100);
  for (int length = 1; length <= 100; ++length) {
    table.grow(pool, length - 1, length);
    table.release_behind_window(pool, length);
    // A row at position `length` sees length-5 .. length.
    for (int p = std::max(0, length - 5); p < length; ++p) EXPECT_GE(table.slot(p), 0);
    EXPECT_LE(table.held(), 3);
    EXPECT_EQ(table.held(), pool.used());
  }
  table.release_all(pool);
  EXPECT_EQ(pool.free(), 8);
}

TEST(BlockTable, CopiesASharedPageBeforeItIsWritten) {
  PagePool pool(8, P);
  BlockTable a(P, 0, 100), b(P, 0, 100);
  a.grow(pool, 0, 6);
  b.share(pool, a);
  EXPECT_EQ(pool.used(), 2);
  EXPECT_EQ(pool.shared(), 2);
  PageId partial = a.pages()[1];
  EXPECT_EQ(b.needed(pool, 6, 7), 1);
  PageCopy copy = b.grow(pool, 6, 7);
  EXPECT_EQ(copy.from, partial);
  EXPECT_EQ(copy.to, b.pages()[1]);
  EXPECT_NE(copy.to, partial);
  // Now a is the only one that holds it, and writes in place.
  EXPECT_EQ(a.needed(pool, 6, 8), 0);
  EXPECT_EQ(a.grow(pool, 6, 8).to, kNoPage);
  EXPECT_EQ(a.needed(pool, 8, 9), 1);
  EXPECT_EQ(a.pages()[0], b.pages()[0]);
  a.release_all(pool);
  EXPECT_EQ(pool.used(), 2);
  b.release_all(pool);
  EXPECT_EQ(pool.free(), 8);
}

TEST(PrefixCache, ReachesAsFarAsTheTextsAgree) {
  PrefixHasher hasher;
  PrefixCache cache({{20, 0}}, P);
  leave(cache, {0}, text(hasher, counting(18)));
  Text same = text(hasher, counting(30));
  EXPECT_EQ(cache.match(same.keys), 4);
  std::vector<BlockTable> tables{BlockTable(P, 0, 40)};
  cache.adopt(same.keys, 4, tables);
  EXPECT_EQ(tables[0].held(), 4);
  EXPECT_EQ(cache.pool(0).used(), 4);
  tables[0].release_all(cache.pool(0));

  auto tokens = counting(30);
  tokens[9] = 77;
  Text other = text(hasher, tokens);
  EXPECT_EQ(cache.match(other.keys), 2);
  Miss miss = cache.explain(other.keys, other.root, other.tokens, 2);
  EXPECT_EQ(miss.kind, MissKind::kDiffers);
  EXPECT_EQ(miss.position, 9);
  EXPECT_EQ(miss.here, 77);
  EXPECT_EQ(miss.there, 9);
  EXPECT_EQ(cache.explain(same.keys, same.root, same.tokens, 4).kind, MissKind::kNew);
  EXPECT_EQ(cache.explain(std::span(same.keys).first(4), same.root, same.tokens, 4).kind,
            MissKind::kNone);
}

TEST(PrefixCache, SaysWhatWasEvicted) {
  PrefixHasher hasher;
  PrefixCache cache({{6, 0}}, P);
  Text first = text(hasher, counting(16));
  leave(cache, {0}, first);
  leave(cache, {0}, text(hasher, counting(16, 500)));  // needs two of the four pages
  // The end of the first text was evicted, its beginning is still cached.
  EXPECT_EQ(cache.match(first.keys), 2);
  Miss miss = cache.explain(first.keys, first.root, first.tokens, 2);
  EXPECT_EQ(miss.kind, MissKind::kEvicted);
  EXPECT_EQ(miss.position, 8);
}

TEST(PrefixCache, AWindowedGroupNeedsItsWindowOnly) {
  PrefixHasher hasher;
  std::vector<int> windows{0, 6};
  PrefixCache cache({{20, 0}, {20, 6}}, P);
  Text t = text(hasher, counting(40));
  leave(cache, windows, t);
  EXPECT_EQ(cache.match(t.keys), 10);
  std::vector<BlockTable> tables{BlockTable(P, 0, 60), BlockTable(P, 6, 60)};
  cache.adopt(t.keys, 10, tables);
  EXPECT_EQ(tables[0].held(), 10);
  EXPECT_EQ(tables[1].held(), 2);  // positions 35..39 of the window before position 40
  EXPECT_EQ(tables[1].slot(36) % P, 0);
  for (auto g : {0, 1}) tables[g].release_all(cache.pool(g));
  // Without the windowed page 9, the match ends where a whole window is cached.
  PageId lost = cache.pool(1).find(t.keys[9]);
  std::vector<PageId> taken;
  while (cache.pool(1).find(t.keys[9]) == lost) taken.push_back(cache.pool(1).take());
  int reach = cache.match(t.keys);
  EXPECT_LT(reach, 10);
  for (int i = std::max(0, reach * P - 5) / P; i < reach; ++i)
    EXPECT_NE(cache.pool(1).find(t.keys[i]), kNoPage);
}

TEST(PrefixCache, AnyInterleavingKeepsTheBooks) {
  std::mt19937 rng(7);
  PrefixHasher hasher;
  std::vector<int> windows{0, 10};
  PrefixCache cache({{40, 0}, {24, 10}}, P);
  struct Live {
    Text text;
    std::vector<BlockTable> tables;
    int length = 0, named = 0;
  };
  std::vector<Live> live;
  for (int step = 0; step < 20000; ++step) {
    if (live.size() < 5 && rng() % 4 == 0) {
      Live l;
      std::vector<std::int32_t> tokens(60);
      for (auto& t : tokens) t = static_cast<int>(rng() % 50 == 0);  // long common beginnings
      l.text = text(hasher, tokens);
      for (int w : windows) l.tables.emplace_back(P, w, 60);
      int pages = cache.match(l.text.keys);
      cache.adopt(l.text.keys, pages, l.tables);
      l.length = pages * P, l.named = pages;
      live.push_back(std::move(l));
    } else if (!live.empty()) {
      std::size_t i = rng() % live.size();
      Live& l = live[i];
      int count = std::min(60 - l.length, static_cast<int>(rng() % 6));
      bool room = true;
      for (int g : {0, 1})
        room = room && l.tables[g].needed(cache.pool(g), l.length, l.length + count) <=
                           cache.pool(g).available();
      if (count == 0 || !room || rng() % 30 == 0) {
        for (int g : {0, 1}) l.tables[g].release_all(cache.pool(g));
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        for (int g : {0, 1}) l.tables[g].grow(cache.pool(g), l.length, l.length + count);
        l.length += count;
        for (; (l.named + 1) * P <= l.length; ++l.named)
          for (int g : {0, 1})
            if (PageId page = l.tables[g].pages()[l.named]; page != kNoPage)
              cache.pool(g).name(page, l.text.keys[l.named],
                                 l.named == 0 ? l.text.root : l.text.keys[l.named - 1], l.named,
                                 std::span(l.text.tokens).subspan(l.named * P, P));
        for (int g : {0, 1}) l.tables[g].release_behind_window(cache.pool(g), l.length);
      }
    }
    for (int g : {0, 1}) {
      std::vector<int> holders(cache.pool(g).total(), 0);
      for (const Live& l : live)
        for (PageId page : l.tables[g].pages())
          if (page != kNoPage) ++holders[page];
      int used = 0;
      for (int p = 0; p < cache.pool(g).total(); ++p) {
        ASSERT_EQ(holders[p], cache.pool(g).holders(p));
        used += holders[p] > 0;
      }
      ASSERT_EQ(used, cache.pool(g).used());
    }
  }
  for (Live& l : live)
    for (int g : {0, 1}) l.tables[g].release_all(cache.pool(g));
  for (int g : {0, 1}) EXPECT_EQ(cache.pool(g).available(), cache.pool(g).total());
}

}  // namespace
}  // namespace vitrine
