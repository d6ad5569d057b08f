#include "sampling/explain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

namespace vitrine {
namespace {

constexpr std::size_t kVocab = 500;

std::vector<float> random_logits(int seed, double spread = 3) {
  std::mt19937 rng(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal(0, static_cast<float>(spread));
  std::vector<float> out(kVocab);
  for (float& x : out) x = normal(rng);
  if (seed % 3 == 0) out[7] = -std::numeric_limits<float>::infinity();
  return out;
}

SamplingParams params(std::initializer_list<std::pair<const char*, double>> values) {
  SamplingParams out;
  for (const auto& [name, value] : values) EXPECT_TRUE(out.set(name, value).ok()) << name;
  return out;
}

// Law 5: every stage sums to its integer total.
void expect_sums(const Explanation& told) {
  for (const StageView& stage : told.stages) {
    std::uint64_t sum = stage.rest_weight;
    for (const Candidate& c : stage.top) sum += c.weight;
    EXPECT_EQ(sum, stage.total) << stage.name;
    EXPECT_GT(stage.total, 0u) << stage.name;
    EXPECT_EQ(stage.top.size() + stage.rest, stage.kept) << stage.name;
    EXPECT_GE(stage.mass, 0) << stage.name;
    EXPECT_LE(stage.mass, 1) << stage.name;
    EXPECT_GE(stage.entropy, 0) << stage.name;
    EXPECT_LE(stage.entropy, std::log(static_cast<double>(stage.kept)) + 1e-9) << stage.name;
    for (std::size_t i = 1; i < stage.top.size(); ++i)
      EXPECT_GE(stage.top[i - 1].logit, stage.top[i].logit) << stage.name;
  }
  std::uint64_t last = 0;
  for (const Candidate& c : told.last) last += c.weight;
  EXPECT_EQ(last, told.total());
}

TEST(Explain, EndsInTheTokenThatIsDrawnAndSums) {
  const SamplingParams sets[] = {
      params({}),
      params({{"temperature", 0}}),
      params({{"temperature", 0.7}, {"top_k", 40}, {"top_p", 0.9}, {"min_p", 0.02}}),
      params({{"typical_p", 0.8}, {"temperature", 1.3}}),
      params({{"repetition_penalty", 1.3}, {"frequency_penalty", 0.5}, {"presence_penalty", 0.2}}),
      params({{"top_k", 1}, {"temperature", 2}}),
  };
  Scratch scratch(kVocab);
  for (int seed = 0; seed < 60; ++seed) {
    const std::vector<float> logits = random_logits(seed);
    for (const SamplingParams& set : sets) {
      const Chain chain(set);
      SamplerState history(std::vector<std::int32_t>{1, 2, 3}, 10, kVocab);
      history.accept(5), history.accept(5);
      std::vector<std::int32_t> banned{9, 11};
      DrawSpec draw{.seed = static_cast<std::uint64_t>(seed), .choice_index = 0, .position = 4};
      if (seed % 2 == 1) draw.banned = banned;
      const Explanation told = chain.explain(logits, history, draw, 16, scratch);
      const Explanation last = chain.explain(logits, history, draw, 0, scratch, true);
      const Choice choice = chain.sample(logits, history, draw, scratch);
      ASSERT_EQ(told.status, LogitsStatus::kOk);
      EXPECT_EQ(told.token, choice.token);
      EXPECT_EQ(last.token, choice.token);
      EXPECT_GT(told.weight(choice.token), 0u);
      expect_sums(told);
      expect_sums(last);
      EXPECT_STREQ(told.stages[0].name, "model");
      if (seed % 2 == 1) {
        EXPECT_STREQ(told.stages[1].name, "mask");
      }
      EXPECT_EQ(last.total(), told.total());
      EXPECT_STREQ(last.stages.back().name, told.stages.back().name);
      EXPECT_EQ(last.stages.back().kept, told.stages.back().kept);
    }
  }
}

// Temperature has a range and an exponent too, which do nothing here.
TEST(Explain, NeutralParametersAreNotTold) {
  Scratch scratch(2);
  const Chain chain(params({{"temperature", 0.7}}));
  const Explanation told =
      chain.explain(std::vector<float>{0, 1}, SamplerState(), {1, 0, 1}, 2, scratch);
  ASSERT_EQ(told.stages.back().params.size(), 1u);
  EXPECT_EQ(told.stages.back().params[0].second, 0.7);
}

TEST(Explain, StagesSayWhatTheyKeep) {
  Scratch scratch(4);
  const std::vector<float> logits{std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  const Chain chain(params({{"top_k", 3}, {"top_p", 0.8}}));
  const Explanation told = chain.explain(logits, SamplerState(), {1, 0, 1}, 2, scratch);
  ASSERT_EQ(told.stages.size(), 3u);
  const StageView &model = told.stages[0], &top_k = told.stages[1], &top_p = told.stages[2];
  EXPECT_EQ(model.kept, 4u);
  EXPECT_EQ(model.rest, 2u);
  EXPECT_NEAR(model.p(model.rest_weight), 0.2, 1e-6);
  EXPECT_NEAR(
      model.entropy,
      -(0.5 * std::log(0.5) + 0.3 * std::log(0.3) + 0.15 * std::log(0.15) + 0.05 * std::log(0.05)),
      1e-6);
  EXPECT_EQ(top_k.kept, 3u);
  EXPECT_NEAR(top_k.mass, 0.95, 1e-6);
  ASSERT_EQ(top_k.params.size(), 1u);
  EXPECT_STREQ(top_k.params[0].first, "top_k");
  EXPECT_EQ(top_k.params[0].second, 3);
  EXPECT_EQ(top_p.kept, 2u) << "the one that crosses 0.8 is kept";
  EXPECT_NEAR(top_p.mass, 0.8 / 0.95, 1e-6);
  EXPECT_NEAR(top_p.p(top_p.top[0].weight), 0.625, 1e-6);
}

TEST(Explain, TheOrderIsTheOneThatRuns) {
  Scratch scratch(kVocab);
  const std::vector<float> logits = random_logits(1, 1);
  SamplingParams usual = params({{"temperature", 2}, {"top_p", 0.5}});
  SamplingParams turned = usual;
  const std::vector<std::string> order{"top_p", "temperature"};
  ASSERT_TRUE(turned.set_order(order).ok());
  const auto a = Chain(usual).explain(logits, SamplerState(), {1, 0, 1}, 4, scratch);
  const auto b = Chain(turned).explain(logits, SamplerState(), {1, 0, 1}, 4, scratch);
  ASSERT_EQ(a.stages.size(), 3u);
  ASSERT_EQ(b.stages.size(), 3u);
  EXPECT_STREQ(a.stages[1].name, "temperature");
  EXPECT_STREQ(b.stages[1].name, "top_p");
  EXPECT_GT(a.stages[2].kept, b.stages[2].kept) << "a flatter distribution keeps more";
}

TEST(Explain, StopsWhereOneIsLeftAndShowsWhatIsForced) {
  Scratch scratch(kVocab);
  const std::vector<float> logits = random_logits(2);
  const Chain chain(params({{"temperature", 0}, {"top_k", 5}}));
  const auto greedy = chain.explain(logits, SamplerState(), {1, 0, 1}, 4, scratch);
  ASSERT_EQ(greedy.stages.size(), 2u);
  EXPECT_EQ(greedy.stages[1].kept, 1u);
  EXPECT_EQ(greedy.token, greedy.stages[0].top[0].id);
  DrawSpec forced{1, 0, 1};
  forced.forced = 77;
  const auto told = chain.explain(logits, SamplerState(), forced, 4, scratch);
  ASSERT_EQ(told.stages.size(), 2u);
  EXPECT_STREQ(told.stages[1].name, "forced");
  EXPECT_EQ(told.token, 77);
  EXPECT_EQ(told.last.size(), 1u);
  std::vector<std::uint64_t> none(kVocab / 64 + 1, 0);
  DrawSpec barred{1, 0, 1};
  barred.allowed = &none;
  EXPECT_EQ(chain.explain(logits, SamplerState(), barred, 4, scratch).status,
            LogitsStatus::kMasked);
}

// Chi-square over the tokens that are expected at least five times.
TEST(Explain, ManyDrawsFollowTheLastStage) {
  Scratch scratch(kVocab);
  const Chain chain(params({{"top_k", 20}}));
  const auto told = chain.explain(random_logits(4, 1), SamplerState(), {1, 0, 1}, 4, scratch);
  constexpr int kDraws = 10000;
  double sum = 0;
  int cells = 0, drawn = 0;
  const DrawKey key{.seed = 99, .position = 1};
  const auto counts = draw_often(told, kDraws, key);
  for (const auto& [id, n] : counts) drawn += n;
  EXPECT_EQ(drawn, kDraws);
  for (const Candidate& c : told.last) {
    const double expected =
        kDraws * static_cast<double>(c.weight) / static_cast<double>(told.total());
    if (expected < 5) continue;
    const auto it = std::find_if(counts.begin(), counts.end(),
                                 [&](const auto& count) { return count.first == c.id; });
    const double n = it == counts.end() ? 0 : it->second;
    sum += (n - expected) * (n - expected) / expected;
    ++cells;
  }
  EXPECT_GT(cells, 5);
  EXPECT_LT(sum, cells + 5 * std::sqrt(2.0 * cells));
  EXPECT_EQ(draw_often(told, kDraws, key), counts);
}

// Not some draws: those that other seeds would have given.
TEST(Explain, ManyDrawsAreThoseOfTheNextSeeds) {
  Scratch scratch(kVocab);
  const Chain chain(params({{"temperature", 1.2}, {"top_p", 0.9}}));
  const auto logits = random_logits(4, 1);
  DrawSpec draw{.seed = 40, .choice_index = 2, .position = 17};
  const auto counts =
      draw_often(chain.explain(logits, SamplerState(), draw, 4, scratch), 300, draw.key());
  std::map<std::int32_t, int> expected;
  for (int i = 0; i < 300; ++i) {
    ++draw.seed;
    SamplerState history;
    ++expected[chain.sample(logits, history, draw, scratch).token];
  }
  EXPECT_EQ((std::map<std::int32_t, int>(counts.begin(), counts.end())), expected);
}

}  // namespace
}  // namespace vitrine
