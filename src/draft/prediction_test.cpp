#include "draft/prediction.h"

#include <gtest/gtest.h>

namespace vitrine {
namespace {

std::vector<std::int32_t> drafted(Prediction& source, const std::vector<std::int32_t>& tokens,
                                  std::size_t most = 4) {
  std::vector<Guess> out(most);
  out.resize(static_cast<std::size_t>(source.draft(tokens, out)));
  std::vector<std::int32_t> ids;
  float before = 1;
  for (const Guess& g : out) {
    EXPECT_LE(g.probability, before);
    before = g.probability;
    ids.push_back(g.token);
  }
  return ids;
}

using Ids = std::vector<std::int32_t>;

Prediction expecting(Ids text, int prompt) {
  Prediction out;
  out.begin("");
  out.expect(std::make_shared<const Ids>(std::move(text)), prompt);
  return out;
}

TEST(Prediction, IsFollowedFromItsBeginning) {
  Prediction source = expecting({1, 2, 3, 4, 5, 6}, 2);
  EXPECT_EQ(drafted(source, {9, 9}), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(drafted(source, {9, 9, 1, 2, 3}), (Ids{4, 5, 6}));
  EXPECT_EQ(drafted(source, {9, 9, 1, 2, 3, 4, 5, 6}), Ids{});
  EXPECT_EQ(drafted(source, {9, 9, 1, 2, 3, 4, 5, 6, 7}), Ids{});
}

TEST(Prediction, IsFoundAgainAfterAnEdit) {
  Prediction source = expecting({1, 2, 3, 4, 5, 6, 7, 8}, 1);
  EXPECT_EQ(drafted(source, {9, 1, 2, 30}), Ids{});
  EXPECT_EQ(drafted(source, {9, 1, 2, 30, 4, 5}), Ids{}) << "two tokens say little";
  EXPECT_EQ(drafted(source, {9, 1, 2, 30, 4, 5, 6}), (Ids{7, 8}));
  EXPECT_EQ(drafted(source, {9, 1, 2, 30, 4, 5, 6, 7}), Ids{8});
}

TEST(Prediction, TakesTheLongestAndThenTheNextPlace) {
  // 5 6 7 stands at 0, 4 and 8.
  Prediction source = expecting({5, 6, 7, 1, 5, 6, 7, 2, 5, 6, 7, 3}, 0);
  EXPECT_EQ(drafted(source, {}, 1), Ids{5});
  EXPECT_EQ(drafted(source, {5, 6, 7, 1, 40}), Ids{});
  EXPECT_EQ(drafted(source, {5, 6, 7, 1, 40, 5, 6, 7}, 1), Ids{2});
  source = expecting({1, 5, 6, 7, 1, 2, 5, 6, 7, 2}, 0);
  EXPECT_EQ(drafted(source, {40, 2, 5, 6, 7}, 1), Ids{2});
}

TEST(Prediction, NothingIsExpectedWithoutOne) {
  Prediction source = expecting({1, 2}, 0);
  source.begin("");
  EXPECT_EQ(drafted(source, {1, 2}), Ids{});
  source = expecting({}, 1);
  EXPECT_EQ(drafted(source, {1}), Ids{});
  EXPECT_EQ(drafted(source, {1, 1}), Ids{});
}

TEST(Prediction, LooksNoFurtherThanItsReach) {
  Ids text(3 * Prediction::kReach, 0);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::int32_t>(i);
  Prediction source = expecting(text, 0);
  const std::int32_t far = 2 * Prediction::kReach;
  EXPECT_EQ(drafted(source, {-1, far, far + 1, far + 2}), Ids{});
  const std::int32_t near = Prediction::kReach / 2;
  EXPECT_EQ(drafted(source, {-1, far, far + 1, far + 2, near, near + 1, near + 2}, 1),
            Ids{near + 3});
}

}  // namespace
}  // namespace vitrine
