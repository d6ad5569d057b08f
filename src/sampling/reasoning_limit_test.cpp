#include "sampling/reasoning_limit.h"

#include <gtest/gtest.h>

namespace vitrine {
namespace {

// What is drawn when the model wants `wanted`.
std::vector<std::int32_t> drawn(ReasoningBudget budget, const std::vector<std::int32_t>& wanted) {
  ReasoningLimit limit(std::move(budget));
  std::vector<std::int32_t> out;
  for (std::int32_t token : wanted) {
    std::int32_t forced = limit.forced();
    out.push_back(forced >= 0 ? forced : token);
    limit.accept(out.back());
  }
  return out;
}

using Ids = std::vector<std::int32_t>;

TEST(ReasoningLimit, EndsTheReasoningInTime) {
  EXPECT_EQ(drawn({2, {10}, {11}, false}, {10, 1, 2, 3, 4}), (Ids{10, 1, 2, 11, 4}));
  EXPECT_EQ(drawn({2, {10}, {11, 12}, true}, {1, 2, 3, 4, 5}), (Ids{1, 2, 11, 12, 5}));
  EXPECT_EQ(drawn({0, {10}, {11}, true}, {1, 2}), (Ids{11, 2}));
  EXPECT_EQ(drawn({0, {10}, {11}, false}, {10, 2}), (Ids{10, 11}));
  // The end had begun when the budget was spent.
  EXPECT_EQ(drawn({2, {10}, {11, 12}, true}, {1, 11, 5, 6}), (Ids{1, 11, 12, 6}));
}

// As in harmony: <|end|> closes, and what is forced goes on to the next message.
TEST(ReasoningLimit, ReasoningThatComesInSeveralMessagesHasOneBudget) {
  ReasoningBudget budget{3, {10}, {11, 12, 13}, false, 1, true};
  EXPECT_EQ(drawn(budget, {10, 1, 11, 5, 10, 2, 3, 4, 4, 4, 7}),
            (Ids{10, 1, 11, 5, 10, 2, 3, 11, 12, 13, 7}));
  EXPECT_EQ(drawn(budget, {10, 1, 2, 3, 9, 9, 9, 10, 4, 4, 4, 8}),
            (Ids{10, 1, 2, 3, 11, 12, 13, 10, 11, 12, 13, 8}));
  // Closed by the model: the rest is its own.
  EXPECT_EQ(drawn(budget, {10, 1, 11, 5, 6, 7, 8, 9}), (Ids{10, 1, 11, 5, 6, 7, 8, 9}));
}

TEST(ReasoningLimit, LeavesTheRestAlone) {
  EXPECT_EQ(drawn({2, {10}, {11}, false}, {1, 2, 3, 4}), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(drawn({2, {10}, {11}, false}, {10, 1, 11, 2, 3, 4}), (Ids{10, 1, 11, 2, 3, 4}));
  EXPECT_EQ(drawn({1, {10, 10, 9}, {11}, false}, {10, 10, 8, 7}), (Ids{10, 10, 8, 7}));
}

}  // namespace
}  // namespace vitrine
