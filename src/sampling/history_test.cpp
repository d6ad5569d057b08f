#include "sampling/history.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace vitrine {
namespace {

TEST(SamplerState, CountsTheOutputAndKnowsThePrompt) {
  const std::int32_t prompt[] = {5, 9, 5};
  SamplerState state(prompt, 4, 100);
  state.accept(9);
  state.accept(7);
  state.accept(9);
  ASSERT_EQ(state.entries().size(), 3u);
  EXPECT_EQ(state.find(5)->output_count, 0u);
  EXPECT_EQ(state.find(9)->output_count, 2u);
  EXPECT_EQ(state.find(7)->output_count, 1u);
  EXPECT_EQ(state.find(6), nullptr);
}

TEST(SamplerState, IgnoresIdsOutsideTheVocabularyAndTokensPastItsRoom) {
  const std::int32_t prompt[] = {-1, 100, 3};
  SamplerState state(prompt, 0, 100);
  EXPECT_EQ(state.entries().size(), 1u);
  EXPECT_EQ(state.find(-1), nullptr);
  for (std::int32_t id = 0; id < 100; ++id) state.accept(id);
  EXPECT_LE(state.entries().size(), 3u);
  EXPECT_EQ(state.find(3)->output_count, 1u);
}

TEST(SamplerState, TracksNothingByDefault) {
  SamplerState state;
  state.accept(1);
  EXPECT_TRUE(state.entries().empty());
  EXPECT_EQ(state.find(1), nullptr);
}

TEST(SamplerState, KeepsTheTokensWhereAsked) {
  const std::int32_t prompt[] = {5, 9, 500};
  SamplerState state(prompt, 2, 100, {.counts = false, .tokens = true});
  const auto* storage = state.tokens().data();
  EXPECT_TRUE(state.output().empty());
  for (const std::int32_t id : {7, 9, 8}) state.accept(id);
  EXPECT_EQ(state.tokens().data(), storage);
  EXPECT_EQ(std::vector(state.tokens().begin(), state.tokens().end()),
            (std::vector<std::int32_t>{5, 9, 500, 7, 9}))
      << "no room for the sixth";
  EXPECT_EQ(state.output().front(), 7);
  EXPECT_EQ(state.find(9), nullptr);
  EXPECT_TRUE(SamplerState().tokens().empty());
  EXPECT_TRUE(SamplerState().output().empty());
}

TEST(SamplerState, AgreesWithAMapAndNeverMoves) {
  std::mt19937 random(1);
  std::vector<std::int32_t> prompt(300);
  for (auto& id : prompt) id = static_cast<std::int32_t>(random() % 1000);
  SamplerState state(prompt, 2000, 1000);
  const auto* storage = state.entries().data();
  std::map<std::int32_t, std::uint32_t> expected;
  for (const auto id : prompt) expected[id];
  for (int i = 0; i < 2000; ++i) {
    const auto id = static_cast<std::int32_t>(random() % 1000);
    state.accept(id);
    ++expected[id];
  }
  EXPECT_EQ(state.entries().data(), storage);
  EXPECT_EQ(state.entries().size(), expected.size());
  for (const auto& [id, count] : expected) EXPECT_EQ(state.find(id)->output_count, count) << id;
}

}  // namespace
}  // namespace vitrine
