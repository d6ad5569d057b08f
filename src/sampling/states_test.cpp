// Samplers with a state: plain versions beside them over many draws, and the state as a function of
// what was taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sampling/chain.h"
#include "sampling/explain.h"
#include "support/allocation_count.h"

namespace vitrine {
namespace {

constexpr std::size_t kVocab = 300;

SamplingParams params(std::initializer_list<std::pair<const char*, double>> values) {
  SamplingParams out;
  for (const auto& [name, value] : values) EXPECT_TRUE(out.set(name, value).ok()) << name;
  return out;
}

std::vector<float> row_of(std::uint64_t position) {
  std::mt19937 random(static_cast<unsigned>(position));
  std::normal_distribution<float> normal(0, position % 3 == 0 ? 1.0f : 3.0f);
  std::vector<float> out(kVocab);
  for (float& x : out) x = normal(random);
  return out;
}

// Probabilities by falling logit, with ids.
std::vector<std::pair<double, std::int32_t>> sorted(const std::vector<float>& row, double t) {
  std::vector<std::pair<double, std::int32_t>> out;
  const float max = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float x : row) {
    out.emplace_back(std::exp((x - max) / t), static_cast<std::int32_t>(out.size()));
    sum += out.back().first;
  }
  for (auto& [p, id] : out) p /= sum;
  std::stable_sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.first > b.first; });
  return out;
}

// The published algorithms: how many are kept.
std::size_t mirostat_keeps(int version, const std::vector<std::pair<double, std::int32_t>>& p,
                           double mu) {
  if (version == 2) {
    std::size_t n = 0;
    while (n < p.size() && -std::log2(p[n].first) <= mu) ++n;
    return std::max<std::size_t>(n, 1);
  }
  double up = 0, down = 0;
  for (std::size_t i = 0; i < 99; ++i) {
    const double t = std::log(double(i + 2) / double(i + 1));
    up += t * std::log(p[i].first / p[i + 1].first), down += t * t;
  }
  const double s = up / down, epsilon = s - 1;
  const double k =
      std::pow(epsilon * std::pow(2, mu) / (1 - std::pow(double(p.size()), -epsilon)), 1 / s);
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::min(k, double(p.size()))));
}

TEST(Mirostat, AgreesWithAPlainVersion) {
  for (int version : {1, 2}) {
    const double tau = 3, eta = 0.2, t = 1.3;
    const Chain chain(params(
        {{"mirostat", version}, {"mirostat_tau", tau}, {"mirostat_eta", eta}, {"temperature", t}}));
    SamplerState history = chain.begin({}, 500, kVocab);
    Scratch scratch(kVocab);
    double mu = 2 * tau, surprise = 0;
    for (std::uint64_t i = 0; i < 400; ++i) {
      const auto row = row_of(i);
      ASSERT_NEAR(history.memory.a, mu, 1e-3) << i;
      const auto all = sorted(row, t);
      const std::size_t keeps = mirostat_keeps(version, all, history.memory.a);
      const DrawSpec draw{7, 0, i};
      const auto told = chain.explain(row, history, draw, 0, scratch, true);
      EXPECT_NEAR(double(told.stages.back().kept), double(keeps), 1) << i;
      const Choice choice = chain.sample(row, history, draw, scratch);
      EXPECT_EQ(choice.token, told.token);
      double sum = 0, p = 0;
      for (std::size_t n = 0; n < told.stages.back().kept; ++n) {
        sum += all[n].first;
        if (all[n].second == choice.token) p = all[n].first;
      }
      EXPECT_NEAR(choice.p, p / sum, 1e-5) << i;
      mu -= eta * (-std::log2(p / sum) - tau);
      surprise += -std::log2(choice.p) / 400;
    }
    EXPECT_NEAR(surprise, tau, 0.1) << "it holds its target";
  }
}

TEST(Mirostat, ReplacesCutsAndOnlyThese) {
  const Chain chain(params({{"mirostat", 2},
                            {"top_k", 1},
                            {"xtc_probability", 1},
                            {"adaptive_target", 0.5},
                            {"temperature", 1.5},
                            {"repetition_penalty", 1.2}}));
  Scratch scratch(kVocab);
  const auto told = chain.explain(row_of(1), chain.begin({}, 4, kVocab), {1, 0, 1}, 0, scratch);
  std::vector<std::string> names;
  for (const StageView& stage : told.stages) names.push_back(stage.name);
  EXPECT_THAT(names, testing::ElementsAre("model", "repetition", "temperature", "mirostat"));
  EXPECT_FALSE(chain.on_device());
}

TEST(AdaptiveP, AgreesWithAPlainVersion) {
  const double target = 0.4, decay = 0.8;
  const Chain chain(
      params({{"adaptive_target", target}, {"adaptive_decay", decay}, {"top_k", 20}}));
  SamplerState history = chain.begin({}, 500, kVocab);
  Scratch scratch(kVocab);
  double w = target / (1 - decay), s = 1 / (1 - decay);
  for (std::uint64_t i = 0; i < 300; ++i) {
    const auto row = row_of(i);
    ASSERT_NEAR(history.memory.a, w, 1e-4) << i;
    ASSERT_NEAR(history.memory.b, s, 1e-4) << i;
    auto all = sorted(row, 1);
    all.resize(20);
    double sum = 0, weights = 0;
    for (const auto& [p, id] : all) sum += p;
    const double aim = std::clamp(2 * target - w / s, 0.0, 1.0);
    std::vector<double> expected;
    for (auto& [p, id] : all) {
      p /= sum;
      const double x = std::fabs(p - aim) / 0.3;
      expected.push_back(std::exp(5 - 10 * x * x / (1 + x)));
      weights += expected.back();
    }
    const DrawSpec draw{7, 0, i};
    const auto told = chain.explain(row, history, draw, 20, scratch);
    const Choice choice = chain.sample(row, history, draw, scratch);
    EXPECT_EQ(choice.token, told.token);
    for (std::size_t n = 0; n < all.size(); ++n) {
      EXPECT_NEAR(told.stages.back().p(told.weight(all[n].second)), expected[n] / weights, 1e-5);
      if (all[n].second != choice.token) continue;
      EXPECT_NEAR(choice.p, all[n].first, 1e-6);
      w = all[n].first + decay * w, s = 1 + decay * s;
    }
  }
}

// Looking changes nothing; what was told is followed to the bit; forced tokens do not count.
TEST(SamplersWithState, ChangeWhenATokenIsTakenOnly) {
  for (const auto& set : {params({{"mirostat", 1}}), params({{"mirostat", 2}}),
                          params({{"adaptive_target", 0.3}, {"min_p", 0.01}})}) {
    const Chain chain(set);
    ASSERT_NE(chain.stateful(), nullptr);
    const std::int32_t prompt[] = {4, 5};
    SamplerState served = chain.begin(prompt, 50, kVocab), told = served;
    Scratch scratch(kVocab);
    for (std::uint64_t i = 0; i < 40; ++i) {
      const auto row = row_of(i);
      DrawSpec draw{3, 0, i};
      if (i % 7 == 3) draw.forced = 11;
      const SamplerMemory before = served.memory;
      const auto look = chain.explain(row, served, draw, 3, scratch);
      EXPECT_EQ(served.memory.a, before.a);
      const std::size_t allocated = allocation_count();
      const Choice choice = chain.sample(row, served, draw, scratch);
      EXPECT_EQ(allocation_count(), allocated);
      EXPECT_EQ(choice.token, look.token);
      EXPECT_EQ(draw.forced >= 0, choice.p == kNoShare);
      EXPECT_EQ(draw.forced >= 0, before.a == served.memory.a);
      chain.take(told, choice.token, choice.p);
      ASSERT_EQ(told.memory.a, served.memory.a);
      ASSERT_EQ(told.memory.b, served.memory.b);
    }
  }
  EXPECT_EQ(Chain(params({{"top_k", 3}})).stateful(), nullptr);
}

}  // namespace
}  // namespace vitrine
