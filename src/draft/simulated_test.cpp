#include "draft/simulated.h"

#include <gtest/gtest.h>

namespace vitrine {
namespace {

using Tokens = std::vector<std::int32_t>;

Tokens text_of(int size) {
  Tokens out;
  for (int i = 0; i < size; ++i) out.push_back(i % 7);
  return out;
}

TEST(Simulated, IsRightAsOftenAsItIsTold) {
  KnownTexts texts;
  const Tokens text = text_of(20'000);
  for (const double right : {0.0, 0.3, 0.8, 1.0}) {
    texts.set("a", text);
    SimulatedSource source(texts, right);
    source.begin("a");
    std::vector<Guess> out(4);
    int good = 0, all = 0;
    for (std::size_t known = 1; known + 4 <= text.size(); known += 4) {
      ASSERT_EQ(source.draft(std::span(text).first(known), out), 4);
      for (std::size_t i = 0; i < 4; ++i) good += out[i].token == text[known + i], ++all;
      EXPECT_FLOAT_EQ(out[0].probability, static_cast<float>(right));
      EXPECT_FLOAT_EQ(out[1].probability, static_cast<float>(right * right));
    }
    EXPECT_NEAR(static_cast<double>(good) / all, right, 0.015);
  }
}

TEST(Simulated, APlaceIsGuessedTheSameWheneverItIs) {
  KnownTexts texts;
  const Tokens text = text_of(200);
  texts.set("a", text), texts.set("b", text);
  SimulatedSource source(texts, 0.5), other(texts, 0.5);
  source.begin("a"), other.begin("b");
  int differ = 0;
  for (std::size_t known = 1; known + 8 <= text.size(); ++known) {
    std::vector<Guess> many(8), one(1), of_other(1);
    source.draft(std::span(text).first(known), many);
    source.draft(std::span(text).first(known + 7), one);
    other.draft(std::span(text).first(known + 7), of_other);
    EXPECT_EQ(many[7].token, one[0].token);
    differ += one[0].token != of_other[0].token;
  }
  EXPECT_GT(differ, 50) << "sequences share their coins";
}

TEST(Simulated, KnowsNoMoreThanItWasTold) {
  KnownTexts texts;
  texts.set("a", text_of(10));
  SimulatedSource source(texts, 1);
  std::vector<Guess> out(4);
  source.begin("b");
  EXPECT_EQ(source.draft(text_of(3), out), 0);
  source.begin("a");
  EXPECT_EQ(source.draft(text_of(8), out), 2);
  EXPECT_EQ(source.draft(text_of(10), out), 0);
  EXPECT_EQ(source.draft(text_of(12), out), 0);
  texts.clear();
  source.begin("a");
  EXPECT_EQ(source.draft(text_of(3), out), 0);
}

}  // namespace
}  // namespace vitrine
