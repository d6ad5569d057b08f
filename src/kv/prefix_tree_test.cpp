#include "kv/prefix_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace vitrine {
namespace {

constexpr int P = 4;
using Tokens = std::vector<std::int32_t>;

class PrefixTreeTest : public ::testing::Test {
 protected:
  // Names the whole pages of a text and keeps them held.
  std::vector<PageId> name(const Tokens& text) {
    std::vector<PageId> out;
    PrefixKey key = hasher_.root("");
    for (std::size_t i = 0; (i + 1) * P <= text.size(); ++i) {
      const std::span tokens = std::span(text).subspan(i * P, P);
      const PrefixKey parent = key;
      key = hasher_.extend(parent, tokens);
      PageId page = pool_.find(key);
      if (page == kNoPage) {
        page = pool_.take();
        pool_.name(page, key, parent, static_cast<int>(i), tokens);
      } else {
        pool_.hold(page);
      }
      out.push_back(page);
    }
    return out;
  }
  void release(const std::vector<PageId>& pages, std::int64_t now) {
    pool_.set_time(now);
    for (auto it = pages.rbegin(); it != pages.rend(); ++it) pool_.release(*it);
  }
  NamedPages named() const {
    NamedPages out;
    pool_.list_named(out);
    return out;
  }
  static Tokens text_of(const NamedPages& named, const PrefixNode& node) {
    Tokens out;
    for (const std::int32_t page : node.pages)
      for (const std::int32_t token : named.tokens_of(static_cast<std::size_t>(page)))
        out.push_back(token);
    return out;
  }
  static Tokens repeated(std::initializer_list<std::int32_t> pages) {
    Tokens out;
    for (const std::int32_t page : pages) out.insert(out.end(), P, page);
    return out;
  }

  PrefixHasher hasher_;
  PagePool pool_{512, P};
};

TEST_F(PrefixTreeTest, NothingIsAnEmptyTree) {
  EXPECT_TRUE(prefix_tree(named(), {}).nodes.empty());
}

TEST_F(PrefixTreeTest, PagesWithoutABranchAreOneNode) {
  const auto a = name(repeated({1, 2, 3, 4})), b = name(repeated({1, 2, 7}));
  release(b, 500);
  const NamedPages pages = named();
  const PrefixTree tree = prefix_tree(pages, {});
  ASSERT_EQ(tree.nodes.size(), 3u);
  EXPECT_EQ(text_of(pages, tree.nodes[0]), repeated({1, 2}));
  EXPECT_EQ(tree.nodes[0].parent, -1);
  EXPECT_EQ(tree.nodes[0].holders, 1);
  EXPECT_EQ(text_of(pages, tree.nodes[1]), repeated({3, 4})) << "the larger first";
  EXPECT_EQ(tree.nodes[1].parent, 0);
  EXPECT_EQ(tree.nodes[1].first, 2 * P);
  EXPECT_EQ(text_of(pages, tree.nodes[2]), repeated({7}));
  EXPECT_EQ(tree.nodes[2].parent, 0);
  EXPECT_EQ(tree.nodes[2].holders, 0);
  EXPECT_EQ(tree.nodes[2].used_ns, 500);
  EXPECT_EQ(tree.left_out, 0);
}

TEST_F(PrefixTreeTest, LimitsLeaveOutTheSmallest) {
  name(repeated({1, 2, 3, 4})), name(repeated({1, 2, 7})), name(repeated({9}));
  const PrefixTree two = prefix_tree(named(), {.nodes = 2});
  ASSERT_EQ(two.nodes.size(), 2u);
  EXPECT_EQ(two.nodes[1].pages.size(), 2u);
  EXPECT_EQ(two.left_out, 2);
  const PrefixTree roots = prefix_tree(named(), {.depth = 0});
  ASSERT_EQ(roots.nodes.size(), 2u);
  EXPECT_EQ(roots.nodes[0].below, 5);
  EXPECT_EQ(roots.left_out, 3);
  const PrefixTree large = prefix_tree(named(), {.pages = 2});
  ASSERT_EQ(large.nodes.size(), 2u);
  EXPECT_EQ(large.left_out, 2);
  EXPECT_TRUE(prefix_tree(named(), {.pages = 6}).nodes.empty());
}

// A sequence may go on after a page that another one named, and hold its own pages longer.
TEST_F(PrefixTreeTest, WhatLostItsBeginningIsCut) {
  const auto a = name(repeated({1, 2, 3}));
  pool_.release(a[1]);
  while (pool_.find(hasher_.extend(hasher_.extend(hasher_.root(""), repeated({1})),
                                   repeated({2}))) != kNoPage)
    ASSERT_NE(pool_.take(), kNoPage);
  const PrefixTree tree = prefix_tree(named(), {});
  ASSERT_EQ(tree.nodes.size(), 2u);
  EXPECT_FALSE(tree.nodes[0].cut());
  EXPECT_TRUE(tree.nodes[1].cut());
  EXPECT_EQ(tree.nodes[1].first, 2 * P);
}

// Every page is in one node, and the way from a root to a node spells a text that was named.
TEST_F(PrefixTreeTest, RandomTextsAreTheirPaths) {
  std::mt19937 random(7);
  std::map<Tokens, int> prefixes;  // of whole pages: how many texts have it
  for (int i = 0; i < 60; ++i) {
    Tokens text;
    for (int k = 0, n = 1 + static_cast<int>(random() % 6); k < n; ++k)
      text.insert(text.end(), P, static_cast<std::int32_t>(random() % 3));
    for (std::size_t n = P; n <= text.size(); n += P)
      ++prefixes[Tokens(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n))];
    name(text);
  }
  const NamedPages pages = named();
  const PrefixTree tree = prefix_tree(pages, {.nodes = 100000});
  std::vector<Tokens> paths;
  std::size_t seen = 0;
  for (const PrefixNode& node : tree.nodes) {
    Tokens path = node.parent < 0 ? Tokens{} : paths[static_cast<std::size_t>(node.parent)];
    ASSERT_EQ(static_cast<int>(path.size()), node.first);
    int most = 0;
    for (const std::int32_t page : node.pages) {
      const auto tokens = pages.tokens_of(static_cast<std::size_t>(page));
      path.insert(path.end(), tokens.begin(), tokens.end());
      ASSERT_TRUE(prefixes.contains(path));
      most = std::max(most, prefixes[path]);
    }
    EXPECT_EQ(node.holders, most);
    paths.push_back(path);
    seen += node.pages.size();
  }
  EXPECT_EQ(seen, prefixes.size());
  EXPECT_EQ(tree.left_out, 0);
}

}  // namespace
}  // namespace vitrine
