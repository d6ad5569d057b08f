// The transforms that cut by shares, entropies and deviations: the vectors of their authors and
// peers, and plain versions over sorted rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sampling/test_row.h"

namespace vitrine {
namespace {

using test::kInf;
using test::logs;
using test::Row;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

void expect_shares(Row& row, const std::vector<double>& expected) {
  EXPECT_THAT(row.shares(), Pointwise(DoubleNear(1e-6), expected));
}

// llama.cpp, tests/test-sampling.cpp
TEST(TopNSigmaTransform, AgreesWithThePeersVectors) {
  const auto row = logs({0.1, 0.2, 0.3, 0.4});
  expect_shares(Row(row).apply("top_n_sigma", {1}), {0, 0, 0.428571, 0.571429});
  expect_shares(Row(row).apply("top_n_sigma", {3}), {0.1, 0.2, 0.3, 0.4});
}

TEST(TopNSigmaTransform, DoesWithoutMaskedTokensAndTheTemperature) {
  EXPECT_THAT(Row({1, -kInf, 1}).apply("top_n_sigma", {0.1}).ids(), ElementsAre(0, 2));
  EXPECT_THAT(Row({0, 3, -kInf, 10}).apply("temperature", {0.5}).apply("top_n_sigma", {2}).ids(),
              ElementsAre(3, 1));
  EXPECT_THAT(Row({0, 3, -kInf, 10}).apply("top_n_sigma", {1}).ids(), ElementsAre(3));
}

TEST(XtcTransform, AgreesWithThePeersVectors) {
  const auto row = logs({0.4, 0.3, 0.2, 0.1});
  expect_shares(Row(row).apply("xtc", {1, 0.09}), {0, 0, 0, 1});
  expect_shares(Row(row).apply("xtc", {1, 0.19}), {0, 0, 0.666667, 0.333333});
  expect_shares(Row(row).apply("xtc", {1, 0.29}), {0, 0.5, 0.333333, 0.166667});
  expect_shares(Row(row).apply("xtc", {1, 0.39}), {0.4, 0.3, 0.2, 0.1});
}

TEST(XtcTransform, OfEqualTokensTheLastStays) {
  EXPECT_THAT(Row({2, 2, -kInf, 2, -9}).apply("xtc", {1, 0.2}).ids(), ElementsAre(3, 4));
  Row cut({2, 2, -kInf, 2, -9});
  EXPECT_THAT(cut.apply("top_k", {2}).apply("xtc", {1, 0.2}).ids(), ElementsAre(1));
}

// The coin falls as often as asked, by itself at every position, and not with the noise.
TEST(XtcTransform, TossesACoinPerPosition) {
  const auto row = logs({0.6, 0.4});
  int dropped = 0, runs = 0, last = -1, drawn = 0;
  constexpr int kTosses = 20000;
  for (int i = 0; i < kTosses; ++i) {
    Row one(row);
    one.position(static_cast<std::uint64_t>(i)).apply("xtc", {0.3, 0.1});
    const int fell = one.ids().size() == 1;
    dropped += fell;
    runs += fell != last;
    last = fell;
    if (fell) drawn += Row(row).candidates().draw({.position = static_cast<std::uint64_t>(i)}) == 0;
  }
  EXPECT_NEAR(dropped, kTosses * 0.3, 4 * std::sqrt(kTosses * 0.21));
  EXPECT_NEAR(runs, kTosses * 0.42, 4 * std::sqrt(kTosses * 0.42));
  EXPECT_NEAR(drawn, dropped * 0.6, 4 * std::sqrt(dropped * 0.24));
}

TEST(CutoffTransforms, DropWhatIsUnderTheBar) {
  const auto row = logs({0.1, 0.5, 0.04, 0.36});
  EXPECT_THAT(Row(row).apply("epsilon_cutoff", {0.05}).ids(), ElementsAre(1, 3, 0));
  EXPECT_THAT(Row(row).apply("epsilon_cutoff", {0.2}).ids(), ElementsAre(1, 3));
  EXPECT_THAT(Row(row).apply("epsilon_cutoff", {1}).ids(), ElementsAre(1));
  // H is 1.074 nats, e^-H 0.342: the bar of epsilon 0.3 is min(0.3, 0.548 * 0.342 = 0.187).
  EXPECT_THAT(Row(row).apply("eta_cutoff", {0.3}).ids(), ElementsAre(1, 3));
  EXPECT_THAT(Row(row).apply("epsilon_cutoff", {0.37}).ids(), ElementsAre(1));
  EXPECT_THAT(Row(row).apply("eta_cutoff", {0.05}).ids(), ElementsAre(1, 3, 0));
  EXPECT_THAT(Row({5, 5, 5}).apply("eta_cutoff", {1}).ids(), ElementsAre(0, 1, 2));
}

TEST(TopHTransform, KeepsAShareOfTheEntropy) {
  // -p ln p: 0.347, 0.347, 0.260, 0.260 of 1.213.
  const auto row = logs({0.5, 0.25, 0.125, 0.125});
  EXPECT_THAT(Row(row).apply("top_h", {0.1}).ids(), ElementsAre(0));
  EXPECT_THAT(Row(row).apply("top_h", {0.28}).ids(), ElementsAre(0));
  EXPECT_THAT(Row(row).apply("top_h", {0.58}).ids(), ElementsAre(0, 1));
  EXPECT_THAT(Row(row).apply("top_h", {0.8}).ids(), ElementsAre(0, 1, 2));
  EXPECT_THAT(Row(row).apply("top_h", {1}).ids(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(Row(std::vector<float>(300, 1)).apply("top_h", {1}).ids().size(), 100u);
}

TEST(DynamicTemperature, FollowsTheEntropy) {
  const auto row = logs({0.6, 0.3, 0.1});
  const double entropy = -(0.6 * std::log(0.6) + 0.3 * std::log(0.3) + 0.1 * std::log(0.1));
  for (const double exponent : {0.0, 1.0, 2.5}) {
    const double t = 0.5 + 1.5 * std::pow(entropy / std::log(3.0), exponent);
    Row dynamic(row), plain(row);
    dynamic.apply("temperature", {1.25, 0.75, exponent});
    plain.apply("temperature", {t, 0, 1});
    expect_shares(dynamic, plain.shares());
  }
  // All alike: as unsure as can be. One only: as sure, and the coldest is greedy.
  expect_shares(Row({2, 2}).apply("temperature", {0.5, 0.5, 1}), {0.5, 0.5});
  EXPECT_THAT(Row({90, 1, 1}).apply("temperature", {0.5, 1, 1}).ids(), ElementsAre(0));
}

// Plain versions, in floating point over the sorted row. A token within a rounding of the bar may
// be on either side of it.
struct Naive {
  explicit Naive(const std::vector<float>& row) {
    for (std::size_t i = 0; i < row.size(); ++i)
      if (row[i] > -kInf) logits.emplace_back(row[i], static_cast<std::int32_t>(i));
    std::sort(logits.begin(), logits.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    double sum = 0;
    for (const auto& [x, id] : logits) p.push_back(std::exp(x - logits[0].first)), sum += p.back();
    for (double& x : p) x /= sum, entropy -= x > 0 ? x * std::log(x) : 0;
  }
  double deviation() const {
    double mean = 0, square = 0;
    for (const auto& [x, id] : logits) mean += x / static_cast<double>(logits.size());
    for (const auto& [x, id] : logits) square += (x - mean) * (x - mean);
    return std::sqrt(square / static_cast<double>(logits.size()));
  }
  std::vector<std::pair<double, std::int32_t>> logits;
  std::vector<double> p;
  double entropy = 0;
};

// What is clearly over the bar is there, what is clearly under it is not.
void expect_cut(Row& row, const Naive& naive, const std::vector<double>& worth, double bar) {
  const auto ids = row.ids();
  const double near = 1e-6 * std::max(1.0, std::fabs(bar));
  ASSERT_EQ(ids.at(0), naive.logits[0].second);
  for (std::size_t i = 1; i < naive.logits.size(); ++i) {
    const bool kept = i < ids.size();
    if (kept) {
      ASSERT_EQ(ids[i], naive.logits[i].second);
    }
    if (std::fabs(worth[i] - bar) > near) {
      ASSERT_EQ(kept, worth[i] >= bar) << i;
    }
  }
}

TEST(CutTransforms, AgreeWithPlainVersions) {
  std::mt19937 random(3);
  for (int i = 0; i < 1500; ++i) {
    const std::size_t vocab = std::size_t{1} << (1 + random() % 11);
    std::normal_distribution<float> normal(0, std::vector<float>{0.1f, 1, 3, 8}[random() % 4]);
    std::vector<float> row(vocab);
    for (float& x : row) x = random() % 9 == 0 ? -kInf : normal(random);
    row[random() % vocab] = 1;
    const Naive naive(row);
    const bool listed = random() % 2 == 0;  // transforms see a view of the row, or a list
    const auto see = [&](Row& out) -> Row& {
      if (listed) out.candidates().keep_within(1e30);
      return out;
    };
    std::vector<double> logits;
    for (const auto& [x, id] : naive.logits) logits.push_back(x);
    const double n = std::uniform_real_distribution<>(0.1, 3)(random);
    Row sigma(row), cut(row), eta(row), xtc(row);
    EXPECT_NEAR(see(sigma).candidates().deviation(), naive.deviation(), 1e-5);
    EXPECT_NEAR(sigma.candidates().entropy(), naive.entropy, 1e-6);
    expect_cut(sigma.apply("top_n_sigma", {n}), naive, logits, logits[0] - n * naive.deviation());
    const double epsilon = std::pow(10, -5 * std::uniform_real_distribution<>(0, 1)(random));
    expect_cut(see(cut).apply("epsilon_cutoff", {epsilon}), naive, naive.p, epsilon);
    expect_cut(see(eta).apply("eta_cutoff", {epsilon}), naive, naive.p,
               std::min(epsilon, std::sqrt(epsilon) * std::exp(-naive.entropy)));

    std::vector<std::int32_t> left;
    std::size_t tops = 0;
    while (tops < naive.p.size() && naive.p[tops] >= epsilon / 2) ++tops;
    for (std::size_t j = tops < 2 ? 0 : tops - 1; j < naive.p.size(); ++j)
      left.push_back(naive.logits[j].second);
    EXPECT_EQ(see(xtc).apply("xtc", {1, epsilon / 2}).ids(), left);
  }
}

}  // namespace
}  // namespace vitrine
