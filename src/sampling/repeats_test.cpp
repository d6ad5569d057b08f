// The transforms that look at the tokens so far, and those with lists: vectors of peers, and plain
// versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "sampling/test_row.h"

namespace vitrine {
namespace {

using test::kInf;
using test::Row;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

using Ids = std::vector<std::int32_t>;

void expect_dry(std::size_t vocab, const Ids& tokens, const Ids& breakers,
                const std::vector<double>& values, const std::vector<double>& expected) {
  Row row(std::vector<float>(vocab, 0));
  row.history(tokens, {});
  row.breakers(breakers);
  EXPECT_THAT(row.apply("dry", values).shares(), Pointwise(DoubleNear(1e-6), expected));
}

// llama.cpp, tests/test-sampling.cpp
TEST(DryTransform, AgreesWithThePeersVectors) {
  expect_dry(4, {0, 1, 2, 0, 1}, {}, {1, 1.1, 2, 5}, {0.296923, 0.296923, 0.109232, 0.296923});
  expect_dry(5, {0, 1, 2, 3, 4, 0, 1}, {}, {2, 1.1, 2, 7},
             {0.241818, 0.241818, 0.032727, 0.241818, 0.241818});
  expect_dry(5, {0, 1, 3, 4, 0, 1}, {3}, {1, 1.1, 2, 5}, {0.2, 0.2, 0.2, 0.2, 0.2});
}

TEST(DryTransform, TheLongestCopyCountsAndBreakersCutIt) {
  // 2 3 was followed by 4; 1 2 3, longer, by 5.
  Row row(std::vector<float>(8, 0));
  row.history({2, 3, 4, 1, 2, 3, 5}, {1, 2, 3});
  EXPECT_THAT(row.apply("dry", {1, 2, 2, 64}).by_id(), ElementsAre(0, 0, 0, 0, -1, -2, 0, 0));
  Row cut(std::vector<float>(8, 0));
  cut.history({2, 3, 4, 1, 2, 3, 5}, {1, 2, 3}).breakers({1});
  EXPECT_THAT(cut.apply("dry", {1, 2, 2, 64}).by_id(), ElementsAre(0, 0, 0, 0, -1, -1, 0, 0));
  Row window(std::vector<float>(8, 0));
  window.history({2, 3, 4, 1, 2, 3, 5}, {1, 2, 3});
  EXPECT_THAT(window.apply("dry", {1, 2, 2, 7}).by_id(), ElementsAre(0, 0, 0, 0, 0, -2, 0, 0));
}

TEST(DryTransform, LongCopiesStayNumbers) {
  Row row(std::vector<float>(3, 0));
  row.history(Ids(9000, 1), {}).apply("dry", {100, 10, 1, -1});
  EXPECT_EQ(row.by_id()[1], -std::numeric_limits<float>::max());
  Row even(std::vector<float>(3, 0));
  even.history(Ids(9000, 1), {}).apply("dry", {3, 1, 1, -1});
  EXPECT_THAT(even.by_id(), ElementsAre(0, -3, 0));
}

TEST(DryTransform, AgreesWithAPlainVersion) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    const auto vocab = static_cast<std::int32_t>(2 + random() % 6);
    Ids tokens(random() % 60);
    for (auto& id : tokens) id = static_cast<std::int32_t>(random() % vocab);
    const Ids breakers = random() % 2 ? Ids{1} : Ids{};
    const int allowed = static_cast<int>(1 + random() % 4), last = static_cast<int>(random() % 50);
    const bool listed = random() % 2;

    const int size = static_cast<int>(tokens.size()), from = std::max(0, size - last);
    std::map<std::int32_t, int> longest;
    for (int at = from; at < size; ++at) {  // the token that followed
      int n = 0;
      while (at - 1 - n >= from && tokens[at - 1 - n] == tokens[size - 1 - n] &&
             std::count(breakers.begin(), breakers.end(), tokens[size - 1 - n]) == 0)
        ++n;
      if (n >= allowed) longest[tokens[at]] = std::max(longest[tokens[at]], n);
    }
    std::vector<float> expected(static_cast<std::size_t>(vocab), 1);
    for (const auto& [id, n] : longest)
      if (std::count(breakers.begin(), breakers.end(), id) == 0)
        expected[id] = static_cast<float>(1 - 0.5 * std::pow(1.5, n - allowed));
    Row row(std::vector<float>(static_cast<std::size_t>(vocab), 1));
    row.history(tokens, {}).breakers(breakers);
    if (listed) row.candidates().keep_within(1);
    EXPECT_EQ(row.apply("dry", {0.5, 1.5, double(allowed), double(last)}).by_id(), expected);
  }
}

TEST(NoRepeatNgramTransform, AgreesWithAPlainVersion) {
  std::mt19937 random(6);
  for (int round = 0; round < 500; ++round) {
    const auto vocab = static_cast<std::int32_t>(2 + random() % 6);
    Ids tokens(random() % 60);
    for (auto& id : tokens) id = static_cast<std::int32_t>(random() % vocab);
    const std::size_t n = 1 + random() % 6;
    std::set<std::int32_t> left;
    for (std::int32_t id = 0; id < vocab; ++id) {
      Ids next = tokens;
      next.push_back(id);
      bool seen = false;
      for (std::size_t i = 0; i + n < next.size(); ++i)
        seen = seen || std::equal(next.end() - static_cast<std::ptrdiff_t>(n), next.end(),
                                  next.begin() + static_cast<std::ptrdiff_t>(i));
      if (!seen) left.insert(id);
    }
    if (left.empty()) left.insert(0);
    Row row(std::vector<float>(static_cast<std::size_t>(vocab), 1));
    row.history({tokens.begin(), tokens.begin() + tokens.size() / 2},
                {tokens.begin() + tokens.size() / 2, tokens.end()});
    if (random() % 2) row.candidates().keep_within(1);
    EXPECT_EQ(row.apply("no_repeat_ngram", {double(n)}).ids(), Ids(left.begin(), left.end()));
  }
}

TEST(BadWordsTransform, BansTheLastTokenAfterTheRest) {
  const auto left = [](std::vector<Ids> words, Ids prompt, Ids output) {
    Row row({1, 1, 1, 1});
    row.history(std::move(prompt), std::move(output)).bad_words(std::move(words));
    return row.apply("bad_words").ids();
  };
  EXPECT_THAT(left({{2}}, {}, {}), ElementsAre(0, 1, 3));
  EXPECT_THAT(left({{1, 2}, {0, 1, 3}}, {}, {1}), ElementsAre(0, 1, 3));
  EXPECT_THAT(left({{1, 2}, {0, 1, 3}}, {}, {3, 0, 1}), ElementsAre(0, 1));
  EXPECT_THAT(left({{1, 2}, {0, 1, 3}}, {0}, {1}), ElementsAre(0, 1, 3)) << "only what was said";
  EXPECT_THAT(left({{1, 2}}, {}, {1, 0}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(left({{0}, {1}, {2}, {3}, {9}}, {}, {}), ElementsAre(0)) << "one stays";
}

TEST(BadWordsTransform, TheBestOfTheLastOnesStays) {
  Row row({1, 5, -kInf, 5});
  row.bad_words({{0}, {1}, {3}});
  EXPECT_THAT(row.apply("temperature", {2, 0, 1}).apply("bad_words").by_id(),
              ElementsAre(-kInf, 2.5f, -kInf, -kInf));
  Row cut({1, 5, -kInf, 5});
  cut.bad_words({{1}, {3}});
  EXPECT_THAT(cut.apply("top_k", {2}).apply("bad_words").ids(), ElementsAre(1));
}

TEST(AllowedTokenIdsTransform, KeepsThese) {
  Row row({1, 5, -kInf, 4});
  row.allowed({0, 2, 3});
  EXPECT_THAT(row.apply("allowed_token_ids").ids(), ElementsAre(3, 0));
  Row none({1, 5, -kInf, 4});
  none.allowed({2});
  EXPECT_THAT(none.apply("allowed_token_ids").ids(), ElementsAre(1, 3, 0)) << "the mask goes first";
}

}  // namespace
}  // namespace vitrine
