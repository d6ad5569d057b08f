// Each transform's definition, on distributions small enough to work out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/test_row.h"

namespace vitrine {
namespace {

using testing::ElementsAre;

using test::kInf;
using test::logs;
using test::Row;

TEST(LogitBiasTransform, AddsAndLeavesMaskedTokensMasked) {
  EXPECT_THAT(Row({1, 2, -kInf}).bias({{0, 5}, {2, 100}, {99, 3}}).apply("logit_bias").by_id(),
              ElementsAre(6, 2, -kInf));
}

TEST(RepetitionTransform, DividesPositiveMultipliesNegativeOncePerToken) {
  Row row({4, -4, 0, 4, -4, 3});
  row.history({0, 0, 1, 2}, {4, 4, 4});
  EXPECT_THAT(row.apply("repetition", {2}).by_id(), ElementsAre(2, -8, 0, 4, -8, 3));
}

TEST(RepetitionTransform, ExtremePenaltiesStayFinite) {
  Row row({4, -3e38f, 0});
  row.history({0, 1, 2}, {});
  const auto logits = row.apply("repetition", {5e-324}).by_id();
  EXPECT_EQ(logits[0], std::numeric_limits<float>::max());
  EXPECT_EQ(logits[2], 0);
  Row big({4, -3e38f});
  big.history({1}, {});
  EXPECT_EQ(big.apply("repetition", {10}).by_id()[1], -std::numeric_limits<float>::max());
}

TEST(FrequencyPresenceTransform, CountsTheOutputOnly) {
  Row row({1, 1, 1, 1});
  row.history({0, 0, 1}, {1, 2, 2, 2});
  EXPECT_THAT(row.apply("frequency_presence", {0.5, 0.25}).by_id(),
              ElementsAre(1, 0.25f, -0.75f, 1));
  Row reward({1, 1});
  reward.history({}, {1});
  EXPECT_THAT(reward.apply("frequency_presence", {-0.5, -1}).by_id(), ElementsAre(1, 2.5f));
}

TEST(TemperatureTransform, ScalesWhatLaterTransformsSee) {
  // 0.5^2 : 0.25^2 = 4 : 1, so halving the temperature takes the second below a fifth.
  EXPECT_THAT(Row(logs({0.5, 0.25})).apply("min_p", {0.3}).ids(), ElementsAre(0, 1));
  EXPECT_THAT(Row(logs({0.5, 0.25})).apply("temperature", {0.5}).apply("min_p", {0.3}).ids(),
              ElementsAre(0));
  Row row({2, 4});
  row.bias({{0, 1}});
  EXPECT_THAT(row.apply("temperature", {2}).apply("logit_bias").by_id(), ElementsAre(2, 2));
}

TEST(TemperatureTransform, ZeroKeepsTheFirstOfTheBest) {
  EXPECT_THAT(Row({1, 3, 3, 2}).apply("temperature", {0}).ids(), ElementsAre(1));
  EXPECT_THAT(Row({1, kInf, 3, kInf}).apply("temperature", {0}).ids(), ElementsAre(1));
  Row row({1, 3, 3, 2});
  EXPECT_THAT(row.apply("top_k", {3}).apply("temperature", {0}).ids(), ElementsAre(1));
}

TEST(TopKTransform, TiesGoToTheLowerId) {
  EXPECT_THAT(Row({1, 3, 2, 3, 2}).apply("top_k", {3}).ids(), ElementsAre(1, 3, 2));
  EXPECT_THAT(Row({1, 3, 2, 3, 2}).apply("top_k", {1}).ids(), ElementsAre(1));
  EXPECT_THAT(Row({1, 3}).apply("top_k", {2147483647}).ids(), ElementsAre(1, 0));
  EXPECT_THAT(Row({5, 5, 5, 5}).apply("top_k", {2}).ids(), ElementsAre(0, 1));
  EXPECT_THAT(Row({1, -kInf, 2, -kInf}).apply("top_k", {3}).ids(), ElementsAre(2, 0));
}

TEST(TopKTransform, ShrinksItsBufferCorrectly) {
  std::vector<float> rising, falling;
  for (int i = 0; i < 5000; ++i) rising.push_back(static_cast<float>(i / 2));
  falling.assign(rising.rbegin(), rising.rend());
  EXPECT_THAT(Row(rising).apply("top_k", {3}).ids(), ElementsAre(4998, 4999, 4996));
  EXPECT_THAT(Row(falling).apply("top_k", {3}).ids(), ElementsAre(0, 1, 2));
}

TEST(TopPTransform, KeepsTheTokenThatCrosses) {
  const auto row = logs({0.1, 0.5, 0.1, 0.3});
  EXPECT_THAT(Row(row).apply("top_p", {0.001}).ids(), ElementsAre(1));
  EXPECT_THAT(Row(row).apply("top_p", {0.49}).ids(), ElementsAre(1));
  EXPECT_THAT(Row(row).apply("top_p", {0.51}).ids(), ElementsAre(1, 3));
  EXPECT_THAT(Row(row).apply("top_p", {0.79}).ids(), ElementsAre(1, 3));
  EXPECT_THAT(Row(row).apply("top_p", {0.81}).ids(), ElementsAre(1, 3, 0));
  EXPECT_THAT(Row(row).apply("top_p", {0.91}).ids(), ElementsAre(1, 3, 0, 2));
}

TEST(TopPTransform, ExactSharesAreNotOvershot) {
  EXPECT_THAT(Row({7, 7, 7, 7}).apply("top_p", {0.5}).ids(), ElementsAre(0, 1));
  EXPECT_THAT(Row({7, 7, 7, 7}).apply("top_p", {0.500001}).ids(), ElementsAre(0, 1, 2));
}

TEST(TopPTransform, CountsWhatIsLeft) {
  // After top_k the shares are 5/8 and 3/8.
  const auto row = logs({0.1, 0.5, 0.1, 0.3});
  EXPECT_THAT(Row(row).apply("top_k", {2}).apply("top_p", {0.6}).ids(), ElementsAre(1));
  EXPECT_THAT(Row(row).apply("top_k", {2}).apply("top_p", {0.65}).ids(), ElementsAre(1, 3));
}

TEST(MinPTransform, IsRelativeToTheBest) {
  const auto row = logs({0.1, 0.5, 0.04, 0.36});
  EXPECT_THAT(Row(row).apply("min_p", {0.19}).ids(), ElementsAre(1, 3, 0));
  EXPECT_THAT(Row(row).apply("min_p", {0.21}).ids(), ElementsAre(1, 3));
  EXPECT_THAT(Row(row).apply("min_p", {0.73}).ids(), ElementsAre(1));
  EXPECT_THAT(Row({2, 3, 3}).apply("min_p", {1}).ids(), ElementsAre(1, 2));
  EXPECT_THAT(Row({2, -3e38f, 3}).apply("min_p", {5e-324}).ids(), ElementsAre(2, 0));
}

TEST(TypicalTransform, PrefersTheExpectedSurpriseToTheBest) {
  // Entropy 1.213 nats; the distances of the surprises from it are 0.520, 0.173, 0.866, 0.866.
  const auto row = logs({0.5, 0.25, 0.125, 0.125});
  EXPECT_THAT(Row(row).apply("typical", {0.2}).ids(), ElementsAre(1));
  EXPECT_THAT(Row(row).apply("typical", {0.26}).ids(), ElementsAre(0, 1));
  EXPECT_THAT(Row(row).apply("typical", {0.74}).ids(), ElementsAre(0, 1));
  EXPECT_THAT(Row(row).apply("typical", {0.76}).ids(), ElementsAre(0, 1, 2));
  // Entropy 1.748; distances 0.832 for the best, 0.555 for the others.
  const auto flat = logs({0.1, 0.1, 0.1, 0.4, 0.1, 0.1, 0.1});
  EXPECT_THAT(Row(flat).apply("typical", {0.59}).ids(), ElementsAre(0, 1, 2, 4, 5, 6));
  EXPECT_THAT(Row(flat).apply("typical", {0.25}).ids(), ElementsAre(0, 1, 2));
  EXPECT_THAT(Row(flat).apply("typical", {0.61}).ids(), ElementsAre(3, 0, 1, 2, 4, 5, 6));
  EXPECT_THAT(Row({4, 4}).apply("typical", {0.3}).ids(), ElementsAre(0));
}

TEST(TypicalTransform, LaterTransformsSeeTheNewBest) {
  const auto flat = logs({0.1, 0.1, 0.1, 0.4, 0.1, 0.1, 0.1});
  Row row(flat);
  EXPECT_THAT(row.apply("typical", {0.59}).apply("min_p", {1}).apply("top_p", {0.5}).ids(),
              ElementsAre(0, 1, 2));
}

TEST(Transforms, PenaltiesAfterACutReachWhatIsLeft) {
  Row row({4, 3, 2, 1});
  row.history({}, {0, 3}).bias({{1, -5}, {3, 50}});
  row.apply("top_k", {2}).apply("frequency_presence", {0, 2}).apply("logit_bias");
  EXPECT_THAT(row.by_id(), ElementsAre(2, -2, -kInf, -kInf));
}

}  // namespace
}  // namespace vitrine
