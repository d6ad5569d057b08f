#include "draft/suffix_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "support/allocation_count.h"

namespace vitrine {
namespace {

using Tokens = std::vector<std::int32_t>;
constexpr int D = SuffixTree::kDepth;

// The same by definition: looks at every place of every text.
struct Naive {
  std::vector<std::pair<SuffixScope, Tokens>> texts;

  SuffixDraft draft(const SuffixScope& scope, const Tokens& context, const SuffixLimits& limits,
                    std::vector<Guess>& out, int most) const {
    SuffixDraft best;
    for (int k = std::min<int>(D - 1, static_cast<int>(context.size())); k > 0; --k) {
      Tokens path(context.end() - k, context.end());
      SuffixDraft found;
      std::vector<Guess> guesses;
      float probability = 1;
      const int length = std::min({most, D - k, static_cast<int>(limits.per_matched * k)});
      while (found.count < length) {
        struct Seen {
          int times = 0, last = 0;
        };
        std::map<std::int32_t, Seen> next;
        int all = 0, when = 0;
        for (const auto& [of, text] : texts)
          for (std::size_t i = 0; i < text.size(); ++i, ++when) {
            if (of != scope || i < path.size()) continue;
            if (!std::equal(path.begin(), path.end(), text.begin() + (i - path.size()))) continue;
            ++next[text[i]].times, next[text[i]].last = when;
            ++all;
          }
        const auto most_frequent = std::ranges::max_element(next, {}, [](const auto& pair) {
          return std::pair(pair.second.times, pair.second.last);
        });
        if (most_frequent == next.end()) break;
        if (most_frequent->second.times < all)
          probability *= static_cast<float>(most_frequent->second.times) / static_cast<float>(all);
        if (probability < limits.min_probability) break;
        guesses.push_back({most_frequent->first, probability});
        path.push_back(most_frequent->first);
        ++found.count, found.score += probability;
      }
      if (found.score > best.score) best = found, out = guesses;
    }
    return best;
  }
};

// Both, of the same texts.
struct Pair {
  Naive naive;
  SuffixTree tree{1 << 20};

  void open(const SuffixScope& scope) {
    tree.open(scope);
    naive.texts.emplace_back(scope, Tokens{});
  }
  void add(std::int32_t token) {
    tree.add(token);
    naive.texts.back().second.push_back(token);
  }
  void add_text(const SuffixScope& scope, const Tokens& text) {
    open(scope);
    for (const std::int32_t token : text) add(token);
    tree.close();
  }
  void expect_equal(const SuffixScope& scope, const Tokens& context,
                    const SuffixLimits& limits = {}, int most = 12) const {
    std::vector<Guess> expected, out(most);
    const SuffixDraft a = naive.draft(scope, context, limits, expected, most);
    const SuffixDraft b = tree.draft(scope, context, limits, out);
    ASSERT_EQ(b.count, a.count);
    EXPECT_FLOAT_EQ(b.score, a.score);
    for (int i = 0; i < a.count; ++i) {
      EXPECT_EQ(out[i].token, expected[i].token) << i;
      EXPECT_FLOAT_EQ(out[i].probability, expected[i].probability) << i;
    }
  }
};

Tokens random_text(int size, int vocab, std::mt19937& rng) {
  Tokens out(size);
  for (auto& token : out) token = static_cast<std::int32_t>(rng() % vocab);
  return out;
}

Tokens periodic(int size, int period) {
  Tokens out;
  for (int i = 0; i < size; ++i) out.push_back(i % period);
  return out;
}

std::vector<Tokens> texts_of_all_kinds(int size) {
  std::mt19937 rng(3);
  std::vector<Tokens> out = {periodic(size, 1), periodic(size, 2), periodic(size, D - 1),
                             periodic(size, D), periodic(size, size)};
  for (const int vocab : {2, 3, 20}) out.push_back(random_text(size, vocab, rng));
  Tokens runs;  // of equal tokens, of all lengths
  while (static_cast<int>(runs.size()) < size) runs.insert(runs.end(), rng() % (2 * D), rng() % 2);
  out.push_back(runs);
  Tokens copy = random_text(size / 3, 50, rng);  // with edits
  for (int i = 0; i < 2 * size / 3; ++i)
    copy.push_back(rng() % 30 == 0 ? 1 : copy[copy.size() - size / 3]);
  out.push_back(copy);
  return out;
}

const SuffixScope kScope = suffix_scope("a");

TEST(SuffixTree, FollowsTheMostFrequent) {
  SuffixTree tree(1 << 16);
  for (const Tokens& text :
       {Tokens{1, 2, 3, 5}, Tokens{1, 2, 3, 6}, Tokens{1, 2, 3, 6}, Tokens{1, 2, 4}}) {
    tree.open(kScope);
    for (const std::int32_t token : text) tree.add(token);
    tree.close();
  }
  std::vector<Guess> out(2);
  const SuffixDraft draft = tree.draft(kScope, Tokens{9, 1, 2}, {}, out);
  ASSERT_EQ(draft.count, 2);
  EXPECT_EQ(out[0].token, 3);
  EXPECT_FLOAT_EQ(out[0].probability, 0.75);
  EXPECT_EQ(out[1].token, 6);
  EXPECT_FLOAT_EQ(out[1].probability, 0.5);
  EXPECT_FLOAT_EQ(draft.score, 1.25);
  EXPECT_EQ(tree.draft(kScope, Tokens{1, 2}, {.per_matched = 0.5}, out).count, 1);
  EXPECT_EQ(tree.draft(kScope, Tokens{1, 2}, {.min_probability = 0.6}, out).count, 1);
  EXPECT_EQ(tree.draft(kScope, Tokens{7}, {}, out).count, 0);
  EXPECT_EQ(tree.draft(kScope, Tokens{}, {}, out).count, 0);
}

TEST(SuffixTree, EqualsTheDefinitionWhileATextGrows) {
  for (const Tokens& text : texts_of_all_kinds(110)) {
    Pair pair;
    pair.open(kScope);
    for (std::size_t i = 0; i < text.size(); ++i) {
      pair.add(text[i]);
      pair.expect_equal(kScope, Tokens(text.begin(), text.begin() + i + 1));
      if (testing::Test::HasFailure()) FAIL() << "after " << i + 1 << " tokens";
    }
  }
}

// Many texts, most of them cut where an edge is; contexts that are there and such that are not.
TEST(SuffixTree, EqualsTheDefinitionOverManyTexts) {
  std::mt19937 rng(5);
  const SuffixScope scopes[] = {suffix_scope("a"), suffix_scope("b"), suffix_scope("")};
  for (int turn = 0; turn < 12; ++turn) {
    Pair pair;
    const std::vector<Tokens> kinds = texts_of_all_kinds(60);
    for (int i = 0; i < 20; ++i) {
      Tokens text = turn < 6 ? random_text(static_cast<int>(rng() % 25), 2 + turn % 3, rng)
                             : kinds[rng() % kinds.size()];
      text.resize(std::min<std::size_t>(text.size(), rng() % 60));
      pair.add_text(scopes[rng() % 2], text);
      const SuffixLimits limits{.per_matched = static_cast<float>(rng() % 5) / 2,
                                .min_probability = static_cast<float>(rng() % 4) / 8};
      for (const SuffixScope& scope : scopes) {
        text.push_back(static_cast<std::int32_t>(rng() % 3));
        pair.expect_equal(scope, text, limits, static_cast<int>(rng() % 20));
        text.pop_back();
        pair.expect_equal(scope, text, limits);
      }
      if (testing::Test::HasFailure()) FAIL() << "turn " << turn << ", text " << i;
    }
  }
}

TEST(SuffixTree, ScopesDoNotSeeEachOther) {
  SuffixTree tree(1 << 16);
  tree.open(suffix_scope("key 1"));
  for (const std::int32_t token : {1, 2, 3}) tree.add(token);
  tree.close();
  std::vector<Guess> out(4);
  EXPECT_EQ(tree.draft(suffix_scope("key 1"), Tokens{1, 2}, {}, out).count, 1);
  EXPECT_EQ(tree.draft(suffix_scope("key 2"), Tokens{1, 2}, {}, out).count, 0);
  EXPECT_EQ(tree.draft(suffix_scope(""), Tokens{1, 2}, {}, out).count, 0);
  EXPECT_NE(suffix_scope("key 1"), suffix_scope("key 2"));
}

TEST(SuffixTree, IsEmptyAfterClear) {
  std::mt19937 rng(6);
  SuffixTree used(1 << 18);
  for (int turn = 0; turn < 5; ++turn) {
    Pair pair;
    used.clear();
    used.open(kScope);
    pair.open(kScope);
    std::vector<Guess> out(8), expected(8);
    EXPECT_EQ(used.draft(kScope, Tokens{1}, {}, out).count, 0);
    Tokens text = random_text(400, 2 + turn, rng);
    for (const std::int32_t token : text) pair.add(token), used.add(token);
    EXPECT_EQ(used.nodes(), pair.tree.nodes());
    for (std::size_t size = 1; size < text.size(); ++size) {
      const auto context = std::span(text).first(size);
      const SuffixDraft a = used.draft(kScope, context, {}, out);
      ASSERT_EQ(a.count, pair.tree.draft(kScope, context, {}, expected).count);
      for (int i = 0; i < a.count; ++i) ASSERT_EQ(out[i].token, expected[i].token);
    }
  }
}

// Whatever comes, it stays within its memory, and within a bound of work for each token.
TEST(SuffixTree, BoundsHoldForEveryText) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{20000}, std::size_t{1} << 20}) {
    for (const Tokens& text : texts_of_all_kinds(20000)) {
      SuffixTree tree(bytes);
      EXPECT_LE(tree.bytes(), std::max(bytes, SuffixTree::kLeastBytes));
      std::vector<Guess> out(16);
      const std::size_t before = allocation_count();
      tree.open(kScope);
      int added = 0;
      std::uint64_t drafting = 0;
      for (; added < 20000 && !tree.full(); ++added) {
        tree.add(text[added % text.size()]);
        const std::uint64_t work = tree.work();
        tree.draft(kScope, std::span(text).subspan(std::max(0, added - 40), 40), {}, out);
        drafting += tree.work() - work;
        EXPECT_LT(tree.work() - work, 4000u);
      }
      const std::uint64_t adding = tree.work() - drafting;
      tree.close();
      EXPECT_EQ(allocation_count(), before);
      EXPECT_LT(adding, 10u * D * (added + D)) << "tokens: " << added;
      EXPECT_LE(tree.nodes(), 2 * added + D + 1);
      if (bytes > 20000) {
        EXPECT_GT(added, 10000);
      }
    }
  }
}

// A new scope for each text, as an adversary would send.
TEST(SuffixTree, ScopesTakeFromTheSameMemory) {
  SuffixTree tree(100000);
  int texts = 0;
  for (; !tree.full(); ++texts) {
    tree.open(suffix_scope(std::to_string(texts)));
    tree.close();
  }
  EXPECT_GT(texts, 300);
  EXPECT_LE(tree.bytes(), 100000u);
}

}  // namespace
}  // namespace vitrine
