#include "sampling/logprobs.h"

#include <gtest/gtest.h>

#include <random>

namespace vitrine {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Weight, IsTheExponentialInFixedPoint) {
  EXPECT_EQ(weight(0), kWeightOne);
  EXPECT_EQ(weight(31), 0u);
  EXPECT_EQ(weight(std::numeric_limits<double>::max()), 0u);
  EXPECT_EQ(weight(std::numeric_limits<double>::infinity()), 0u);
  for (double nats = 0; nats < 31; nats += 0.0017) {
    const double exact = std::exp(-nats) * static_cast<double>(kWeightOne);
    EXPECT_NEAR(static_cast<double>(weight(nats)), exact, 0.51 + exact * 2e-11) << nats;
  }
}

TEST(ScanLogits, FindsTheMaximumAndWhatIsWrongAtEveryPlace) {
  std::mt19937 random(2);
  for (const std::size_t size : {1, 2, 31, 32, 33, 64, 97, 1003}) {
    std::vector<float> logits(size);
    for (auto& x : logits) x = static_cast<float>(random() % 1000) - 500;
    for (std::size_t i = 0; i < size; ++i) {
      const float old = logits[i];
      logits[i] = 600;
      EXPECT_EQ(scan_logits(logits).max, 600);
      EXPECT_EQ(scan_logits(logits).status, LogitsStatus::kOk);
      logits[i] = kNan;
      EXPECT_EQ(scan_logits(logits).status, LogitsStatus::kNan) << size << " " << i;
      logits[i] = old;
    }
    std::fill(logits.begin(), logits.end(), -kInf);
    EXPECT_EQ(scan_logits(logits).status, LogitsStatus::kMasked);
    logits.back() = -3e38f;
    EXPECT_EQ(scan_logits(logits).status, LogitsStatus::kOk);
  }
  EXPECT_EQ(scan_logits({}).status, LogitsStatus::kMasked);
}

TEST(LogSoftmax, AgreesWithTheDefinition) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> logits(1003);
  for (auto& x : logits) x = normal(random);
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));
  const LogSoftmax softmax(logits, scan_logits(logits));
  for (const float x : logits) EXPECT_NEAR(softmax.logprob(x), x - std::log(sum), 1e-5);
}

TEST(LogSoftmax, InfiniteLogits) {
  const float logits[] = {1, kInf, -kInf, kInf};
  const LogSoftmax softmax(logits, scan_logits(logits));
  EXPECT_NEAR(softmax.logprob(kInf), std::log(0.5), 1e-6);
  EXPECT_EQ(softmax.logprob(-kInf), -kInf);
  EXPECT_LT(softmax.logprob(1), -1e38f);
}

TEST(TopLogprobs, OrderIsDescendingLogitThenAscendingId) {
  const float logits[] = {1, 3, 2, 3, -kInf, 2};
  Scratch scratch(6);
  TokenLogprob out[6];
  ASSERT_EQ(top_logprobs(logits, out, scratch), 5u);
  const std::int32_t expected[] = {1, 3, 2, 5, 0};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(out[i].token, expected[i]);
  const double sum = std::log(2 * std::exp(3.) + 2 * std::exp(2.) + std::exp(1.));
  EXPECT_NEAR(out[0].logprob, 3 - sum, 1e-6);
  EXPECT_NEAR(out[4].logprob, 1 - sum, 1e-6);
  EXPECT_EQ(top_logprobs(logits, std::span(out).first(2), scratch), 2u);
  EXPECT_EQ(out[1].token, 3);
}

TEST(TopLogprobs, NothingForBrokenRows) {
  Scratch scratch(2);
  TokenLogprob out[2];
  const float nan[] = {1, kNan}, masked[] = {-kInf, -kInf}, fine[] = {1, 2};
  EXPECT_EQ(top_logprobs(nan, out, scratch), 0u);
  EXPECT_EQ(top_logprobs(masked, out, scratch), 0u);
  EXPECT_EQ(top_logprobs(fine, {}, scratch), 0u);
}

}  // namespace
}  // namespace vitrine
