#include "draft/step_cost.h"

#include <gtest/gtest.h>

#include <random>

namespace vitrine {
namespace {

TEST(StepCost, KnowsNothingAtFirst) {
  StepCost cost({1, 2});
  EXPECT_FALSE(cost.known());
  cost.observe(1, 0);
  EXPECT_FALSE(cost.known());
  cost.observe(1, 5);
  EXPECT_TRUE(cost.known());
}

TEST(StepCost, FillsInWhatWasNotMeasured) {
  StepCost cost({1, 2, 4, 8, 16, 32});
  cost.observe(4, 10);
  EXPECT_DOUBLE_EQ(cost.ns(1), 2.5) << "in proportion";
  EXPECT_DOUBLE_EQ(cost.ns(2), 5);
  EXPECT_DOUBLE_EQ(cost.ns(3), 10) << "padded";
  EXPECT_DOUBLE_EQ(cost.ns(32), 10);
  cost.observe(16, 22);
  EXPECT_DOUBLE_EQ(cost.ns(8), 14) << "on the line";
  EXPECT_DOUBLE_EQ(cost.ns(1000), 22);
  EXPECT_DOUBLE_EQ(cost.at_most(16), 22);
  EXPECT_DOUBLE_EQ(cost.at_most(1000), 44);
}

TEST(StepCost, NeverFalls) {
  StepCost cost({1, 2, 4, 8});
  cost.observe(1, 10), cost.observe(2, 16), cost.observe(4, 8), cost.observe(8, 12);
  EXPECT_DOUBLE_EQ(cost.ns(1), 10);
  EXPECT_DOUBLE_EQ(cost.ns(2), 12) << "their mean";
  EXPECT_DOUBLE_EQ(cost.ns(4), 12);
  EXPECT_DOUBLE_EQ(cost.ns(8), 12);
  std::mt19937 rng(1);
  StepCost random(StepCost::default_sizes(500));
  for (int i = 0; i < 2000; ++i) {
    const int rows = 1 + static_cast<int>(rng() % 600);
    random.observe(rows, 1000 + rows * (0.5 + (rng() % 100) * 0.01));
    for (int r = 1; r < 600; ++r) ASSERT_LE(random.ns(r), random.ns(r + 1));
  }
  EXPECT_NEAR(random.ns(100), 1100, 60);
}

TEST(StepCost, FollowsWhatChanges) {
  StepCost cost({1, 8});
  for (int i = 0; i < 20; ++i) cost.observe(1, 100), cost.observe(8, 200);
  for (int i = 0; i < 100; ++i) cost.observe(8, 220);
  EXPECT_NEAR(cost.ns(8), 220, 1);
  EXPECT_GT(cost.ns(1), 101) << "the other goes with it, a little";
  EXPECT_LT(cost.ns(1), 105);
  cost.observe(8, 1e9);
  EXPECT_LT(cost.ns(8), 300) << "a step that was held up";
}

TEST(StepCost, DefaultSizesAreCloseToTheRows) {
  const std::vector<int> sizes = StepCost::default_sizes(500);
  EXPECT_EQ(sizes.front(), 1);
  EXPECT_EQ(sizes[63], 64);
  EXPECT_EQ(sizes.back(), 500);
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    EXPECT_GT(sizes[i], sizes[i - 1]);
    EXPECT_LE(sizes[i], sizes[i - 1] * 17 / 16 + 1);
  }
  EXPECT_EQ(StepCost::default_sizes(1), std::vector<int>{1});
}

}  // namespace
}  // namespace vitrine
