#include "load/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace vitrine::load {
namespace {

struct Moments {
  double mean, cv;
};

Moments moments(const std::vector<double>& x) {
  double sum = 0, squares = 0;
  for (double v : x) sum += v;
  double mean = sum / double(x.size());
  for (double v : x) squares += (v - mean) * (v - mean);
  return {mean, std::sqrt(squares / double(x.size())) / mean};
}

std::vector<double> lengths(const LengthSpec& spec, int count) {
  std::vector<double> out;
  for (int i = 0; i < count; ++i) {
    Random random(7, i, 1);
    out.push_back(draw_length(spec, random));
  }
  return out;
}

TEST(Lengths, MeanAndVariationAreWhatWasAskedFor) {
  for (double cv : {0.1, 0.5, 1.0}) {
    Moments m = moments(lengths({200, cv, 1 << 20}, 40000));
    EXPECT_NEAR(m.mean, 200, 200 * 0.02) << cv;
    EXPECT_NEAR(m.cv, cv, 0.06 * cv) << cv;
  }
}

TEST(Lengths, NoVariationIsTheMean) {
  for (double x : lengths({37, 0, 0}, 100)) EXPECT_EQ(x, 37);
}

TEST(Lengths, StayWithinOneAndTheMaximum) {
  std::vector<double> x = lengths({20, 3, 50}, 5000);
  auto [low, high] = std::minmax_element(x.begin(), x.end());
  EXPECT_EQ(*low, 1);
  EXPECT_EQ(*high, 50);
  EXPECT_EQ((LengthSpec{20, 1, 0}).limit(), 160);
}

TEST(Plan, GapsArePoissonAtTheRate) {
  LoadSpec spec;
  spec.rate = 50;
  std::vector<double> gaps;
  for (int i = 0; i < 40000; ++i) gaps.push_back(plan_request(spec, i).gap_s);
  Moments m = moments(gaps);
  EXPECT_NEAR(m.mean, 1 / 50.0, 0.02 / 50);
  EXPECT_NEAR(m.cv, 1, 0.03);
}

TEST(Plan, SameSeedSameRequestOtherSeedAnother) {
  LoadSpec spec;
  spec.vocab = 1000;
  spec.prompt.cv = 1;
  PlannedRequest a = plan_request(spec, 5), b = plan_request(spec, 5);
  EXPECT_EQ(a.prompt, b.prompt);
  EXPECT_EQ(a.output_tokens, b.output_tokens);
  EXPECT_NE(plan_request(spec, 6).prompt, a.prompt);
  EXPECT_NE(plan_request(spec, -5).prompt, a.prompt);
  spec.seed = 2;
  EXPECT_NE(plan_request(spec, 5).prompt, a.prompt);
}

TEST(Plan, OutputLengthsDoNotDependOnThePromptOrTheRate) {
  LoadSpec a, b;
  b.prompt = {900, 2, 0};
  b.rate = 3;
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(plan_request(a, i).output_tokens, plan_request(b, i).output_tokens);
}

TEST(Plan, PromptsShareTheirPrefixAndNoMore) {
  LoadSpec spec;
  spec.vocab = 30000;
  spec.prompt = {100, 0, 0};
  spec.shared_prefix = 0.9;
  std::vector<std::int32_t> a = plan_request(spec, 0).prompt, b = plan_request(spec, 1).prompt;
  ASSERT_EQ(a.size(), 100);
  auto differ = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
  EXPECT_EQ(differ, 90);
  spec.shared_prefix = 1;
  EXPECT_EQ(plan_request(spec, 0).prompt, plan_request(spec, 1).prompt);
  for (std::int32_t id : a) EXPECT_THAT(id, testing::AllOf(testing::Ge(0), testing::Lt(30000)));
}

TEST(Plan, BodyIsTheRequest) {
  PlannedRequest request{0, 9, {3, 1, 2}};
  auto body = parse_json(request_body(request, "a \"name\""), "body");
  ASSERT_TRUE(body.ok());
  EXPECT_EQ(*body, (json::value{{"model", "a \"name\""},
                                {"prompt", {3, 1, 2}},
                                {"max_tokens", 9},
                                {"temperature", 0},
                                {"ignore_eos", true},
                                {"stream", true},
                                {"stream_options", {{"include_usage", true}}}}));
  EXPECT_FALSE(parse_json(request_body(request, ""), "body")->as_object().contains("model"));
}

}  // namespace
}  // namespace vitrine::load
