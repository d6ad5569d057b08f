#include "sampling/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "sampling/weight_sum.h"
#include "support/allocation_count.h"

namespace vitrine {
namespace {

using testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

SamplingParams make(std::map<std::string, double> values, std::vector<std::string> order = {}) {
  SamplingParams params;
  for (const auto& [name, value] : values) EXPECT_TRUE(params.set(name, value).ok()) << name;
  if (!order.empty()) {
    EXPECT_TRUE(params.set_order(order).ok());
  }
  return params;
}

Choice sample(const SamplingParams& params, std::span<const float> logits, std::uint64_t seed = 1,
              std::uint64_t position = 0) {
  Scratch scratch(logits.size());
  SamplerState history;
  return Chain(params).sample(logits, history, {seed, 0, position}, scratch);
}

// The plain definition: at every step, sort everything and walk. Works on (logit, id) pairs, a
// pending factor, and the same fixed-point weights.
class Naive {
 public:
  Naive(std::span<const float> logits, const SamplingParams& params, const SamplerState& history)
      : params_(params), history_(history) {
    for (std::size_t i = 0; i < logits.size(); ++i)
      if (logits[i] > -kInf) all_.push_back({logits[i], static_cast<std::int32_t>(i), 0});
  }

  std::int32_t run(const DrawKey& key) {
    for (const SamplerDef* def : params_.order()) apply(def->name);
    sort_and_weigh();
    double least = kInf;
    std::int32_t winner = -1;
    for (const Candidate& c : all_) {  // in the order that settles ties
      if (c.weight == 0) continue;
      const double noise = id_noise(key, block_noise(key, c.id / kRaceBlock), c.id);
      const double time = noise / static_cast<double>(c.weight);
      if (time < least) least = time, winner = c.id;
    }
    return winner;
  }

 private:
  double nats(const Candidate& c) const {
    return (static_cast<double>(all_.front().logit) - c.logit) * scale_;
  }

  void sort_and_weigh() {
    std::sort(all_.begin(), all_.end(), [](const Candidate& a, const Candidate& b) {
      return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    });
    total_ = 0;
    for (Candidate& c : all_) total_ += c.weight = weight(nats(c));
  }

  void cut_to_mass(double mass) {
    const double target = std::ceil(mass * static_cast<double>(total_));
    std::uint64_t sum = 0;
    std::size_t n = 0;
    while (n < all_.size() && (n == 0 || static_cast<double>(sum) < target))
      sum += all_[n++].weight;
    all_.resize(n);
  }

  template <typename F>
  void edit(F f) {
    for (Candidate& c : all_) {
      if (scale_ != 1) c.logit = static_cast<float>(c.logit * scale_);
      c.logit = static_cast<float>(f(static_cast<double>(c.logit), c.id));
    }
    scale_ = 1;
  }

  void apply(const std::string& name) {
    sort_and_weigh();
    if (name == "logit_bias" && !params_.logit_bias().entries().empty()) {
      edit([&](double x, std::int32_t id) {
        const LogitBias* b = params_.logit_bias().find(id);
        return b ? x + b->bias : x;
      });
    } else if (name == "repetition" && params_.get("repetition_penalty") != 1) {
      const double penalty = params_.get("repetition_penalty");
      edit([&](double x, std::int32_t id) {
        return !history_.find(id) ? x : x > 0 ? x / penalty : x * penalty;
      });
    } else if (name == "frequency_presence" &&
               (params_.get("frequency_penalty") != 0 || params_.get("presence_penalty") != 0)) {
      edit([&](double x, std::int32_t id) {
        const auto* e = history_.find(id);
        if (!e || e->output_count == 0) return x;
        return x - e->output_count * params_.get("frequency_penalty") -
               params_.get("presence_penalty");
      });
    } else if (name == "temperature") {
      if (params_.get(name) == 0)
        all_.resize(1);
      else
        scale_ *= 1 / params_.get(name);
    } else if (name == "top_k" && params_.get(name) > 0) {
      all_.resize(std::min<std::size_t>(all_.size(), params_.get(name)));
    } else if (name == "top_p" && params_.get(name) < 1) {
      cut_to_mass(params_.get(name));
    } else if (name == "min_p" && params_.get(name) > 0) {
      const double limit = -std::log(params_.get(name));
      std::size_t n = 1;
      while (n < all_.size() && nats(all_[n]) <= limit) ++n;
      all_.resize(n);
    } else if (name == "typical" && params_.get("typical_p") < 1) {
      apply_typical();
    }
  }

  void apply_typical() {
    std::uint64_t sum = 0;
    for (const Candidate& c : all_)
      if (c.weight > 0) sum += static_cast<std::uint64_t>(std::floor(c.weight * nats(c) + 0.5));
    const double mean = static_cast<double>(sum) / static_cast<double>(total_);
    const double best = all_.front().logit;
    std::stable_sort(all_.begin(), all_.end(), [&](const Candidate& a, const Candidate& b) {
      return std::fabs((best - a.logit) * scale_ - mean) <
             std::fabs((best - b.logit) * scale_ - mean);
    });
    cut_to_mass(params_.get("typical_p"));
  }

  const SamplingParams& params_;
  const SamplerState& history_;
  std::vector<Candidate> all_;
  double scale_ = 1;
  std::uint64_t total_ = 0;
};

// Logits of several shapes; about half the rows have many ties, some have masked tokens.
std::vector<float> random_row(std::mt19937& random, std::size_t vocab) {
  const float spreads[] = {0.01f, 0.5f, 2, 4, 20};
  std::normal_distribution<float> normal(0, spreads[random() % 5]);
  const bool ties = random() % 2, masks = random() % 3 == 0, peak = random() % 2;
  std::vector<float> row(vocab);
  for (float& x : row) {
    x = normal(random);
    if (ties) x = std::round(x * 2) / 2;
    if (masks && random() % 4 == 0) x = -kInf;
  }
  if (peak) row[random() % vocab] = 12;
  row[random() % vocab] = 1;
  return row;
}

SamplingParams random_params(std::mt19937& random, std::size_t vocab) {
  const auto one_of = [&](std::initializer_list<double> xs) {
    return xs.begin()[random() % xs.size()];
  };
  SamplingParams params = make({
      {"repetition_penalty", one_of({1, 1, 0.7, 1.3})},
      {"frequency_penalty", one_of({0, 0, 0.5, -1})},
      {"presence_penalty", one_of({0, 0, 0.3, 2})},
      {"temperature", one_of({1, 0.3, 0.8, 1.7, 2, random() % 4 ? 1.0 : 0.0})},
      {"top_k", one_of({0, 0, -1, 1, 2, 40, 400, 100000})},
      {"top_p", one_of({1, 1, 0.05, 0.5, 0.95, 0.999999})},
      {"min_p", one_of({0, 0, 0.001, 0.05, 0.5, 1})},
      {"typical_p", one_of({1, 1, 0.2, 0.9})},
  });
  if (random() % 2) {
    std::map<std::int32_t, float> bias;
    for (int i = 0; i < 8; ++i)
      bias[static_cast<std::int32_t>(random() % vocab)] = one_of({-100, 3});
    std::vector<LogitBias> entries;
    for (const auto& [id, b] : bias) entries.push_back({id, b});
    EXPECT_TRUE(params.set_logit_bias(entries).ok());
  }
  if (random() % 2) {
    std::vector<std::string> names;
    for (const SamplerDef* def : all_samplers())
      if (random() % 4) names.push_back(def->name);
    std::shuffle(names.begin(), names.end(), random);
    EXPECT_TRUE(params.set_order(names).ok());
  }
  return params;
}

TEST(Chain, AgreesWithAFullSortOnRandomRowsParamsAndOrders) {
  std::mt19937 random(42);
  const std::size_t vocabs[] = {1, 2, 7, 101, 1003, 5003};
  Scratch scratch(5003);
  for (int i = 0; i < 6000; ++i) {
    const std::size_t vocab = vocabs[random() % 6];
    const std::vector<float> row = random_row(random, vocab);
    const SamplingParams params = random_params(random, vocab);
    std::vector<std::int32_t> prompt(random() % 20);
    for (auto& id : prompt) id = static_cast<std::int32_t>(random() % vocab);
    SamplerState history(prompt, 20, vocab);
    for (int n = random() % 10; n > 0; --n)
      history.accept(static_cast<std::int32_t>(random() % vocab));
    const std::uint64_t seed = random(), position = random();

    const std::int32_t expected = Naive(row, params, history).run({seed, position, 3});
    const Choice choice = Chain(params).sample(row, history, {seed, 3, position, false}, scratch);
    ASSERT_EQ(choice.status, LogitsStatus::kOk);
    ASSERT_EQ(choice.token, expected) << "case " << i << ", vocabulary " << vocab;
  }
}

TEST(WeightSum, IsTheSumOfTheWeights) {
  std::mt19937 random(9);
  for (std::size_t vocab : {1, 2, 7, 8, 9, 101, 5003}) {
    const std::vector<float> row = random_row(random, vocab);
    const double max = *std::max_element(row.begin(), row.end());
    for (double scale : {1.0, 0.5, 1 / 0.7, 1e6}) {
      std::uint64_t expected = 0;
      for (float x : row) expected += weight((max - x) * scale);
      EXPECT_EQ(sum_weights(row, max, scale), expected) << vocab << " " << scale;
    }
  }
}

// A banned token behaves as if its logit were -inf.
TEST(Chain, DrawsOnlyWhatIsAllowed) {
  std::mt19937 random(17);
  constexpr std::size_t kVocab = 203;
  Scratch scratch(kVocab);
  for (int i = 0; i < 500; ++i) {
    const std::vector<float> row = random_row(random, kVocab);
    const Chain chain(random_params(random, kVocab));
    std::vector<std::uint64_t> allowed((i % 2 ? 128 : 256) / 64);  // ids past its end are not
    for (std::uint64_t& word : allowed) word = random() & random();
    const std::int32_t also[] = {static_cast<std::int32_t>(random() % kVocab)};
    const std::int32_t banned[] = {static_cast<std::int32_t>(random() % kVocab)};
    std::vector<float> masked = row;
    for (std::size_t id = 0; id < kVocab; ++id) {
      const bool bit = id / 64 < allowed.size() && (allowed[id / 64] >> (id % 64) & 1) != 0;
      if ((!bit && id != static_cast<std::size_t>(also[0])) ||
          id == static_cast<std::size_t>(banned[0]))
        masked[id] = -kInf;
    }
    SamplerState a({}, 4, kVocab), b({}, 4, kVocab);
    DrawSpec draw{random(), 0, 7, false};
    const Choice expected = chain.sample(masked, a, draw, scratch);
    draw.allowed = &allowed, draw.also_allowed = also, draw.banned = banned;
    const Choice choice = chain.sample(row, b, draw, scratch);
    ASSERT_EQ(choice.status, expected.status);
    ASSERT_EQ(choice.token, expected.token);
  }
}

TEST(Chain, SkipsWhatIsNeutral) {
  const auto history = [](double penalty) {
    const std::int32_t prompt[] = {1};
    return Chain(make({{"repetition_penalty", penalty}, {"top_p", 0.9}})).begin(prompt, 4, 9);
  };
  EXPECT_EQ(history(1.1).entries().size(), 1u);
  EXPECT_EQ(history(1).entries().size(), 0u);
}

TEST(Chain, RunsTheOrderAsked) {
  // Cut at half the mass: at temperature 1 two tokens, at 0.5 one, since 0.16 / 0.26 > 0.5.
  std::vector<float> row;
  for (const double p : {0.4, 0.3, 0.1, 0.1, 0.1}) row.push_back(static_cast<float>(std::log(p)));
  const auto distinct = [&](std::vector<std::string> order) {
    std::map<std::int32_t, int> seen;
    const auto params = make({{"temperature", 0.5}, {"top_p", 0.5}}, std::move(order));
    for (std::uint64_t i = 0; i < 200; ++i) ++seen[sample(params, row, 5, i).token];
    return seen.size();
  };
  EXPECT_EQ(distinct({"temperature", "top_p"}), 1u);
  EXPECT_EQ(distinct({"top_p", "temperature"}), 2u);
  EXPECT_EQ(distinct({"top_p"}), 2u);
  EXPECT_EQ(distinct({"top_k"}), 5u);
}

TEST(Chain, BrokenRowsAreAnErrorOfTheRow) {
  for (const auto& params : {SamplingParams(), make({{"temperature", 0}}), make({{"top_k", 3}}),
                             make({{"top_p", 0.5}}), make({{"typical_p", 0.5}})}) {
    const float nan[] = {1, 2, kNan, 4}, masked[] = {-kInf, -kInf}, mixed[] = {kInf, kNan};
    EXPECT_EQ(sample(params, nan).status, LogitsStatus::kNan);
    EXPECT_EQ(sample(params, nan).token, -1);
    EXPECT_EQ(sample(params, mixed).status, LogitsStatus::kNan);
    EXPECT_EQ(sample(params, masked).status, LogitsStatus::kMasked);
    EXPECT_EQ(sample(params, {}).status, LogitsStatus::kMasked);
  }
}

TEST(Chain, InfiniteAndMaskedLogits) {
  const float certain[] = {1, kInf, 3, -kInf}, only[] = {-kInf, -kInf, -3e38f, -kInf};
  for (const auto& values : std::vector<std::map<std::string, double>>{{},
                                                                       {{"temperature", 0}},
                                                                       {{"temperature", 2}},
                                                                       {{"temperature", 5e-324}},
                                                                       {{"top_k", 3}},
                                                                       {{"top_p", 0.999}},
                                                                       {{"min_p", 0.01}},
                                                                       {{"typical_p", 0.9}}}) {
    for (std::uint64_t i = 0; i < 20; ++i) {
      EXPECT_EQ(sample(make(values), certain, 1, i).token, 1);
      EXPECT_EQ(sample(make(values), only, 1, i).token, 2);
    }
    EXPECT_EQ(sample(make(values), certain).logprob, 0);
  }
}

TEST(Chain, ReportsTheLogprobOfTheUnmodifiedLogits) {
  const float row[] = {0, static_cast<float>(std::log(3.0))};
  SamplingParams params = make({{"temperature", 0}});
  ASSERT_TRUE(params.set_logit_bias({{0, 50}}).ok());
  const Choice choice = sample(params, row);
  EXPECT_EQ(choice.token, 0);
  EXPECT_NEAR(choice.logprob, std::log(0.25), 1e-6);
}

TEST(Chain, AcceptsWhatItDraws) {
  const float row[] = {3, 2, 1};
  Scratch scratch(3);
  SamplerState history({}, 3, 3);
  const Chain chain(make({{"temperature", 0}, {"presence_penalty", 1.5}}));
  std::vector<std::int32_t> tokens;
  for (std::uint64_t i = 0; i < 3; ++i)
    tokens.push_back(chain.sample(row, history, {1, 0, i}, scratch).token);
  EXPECT_THAT(tokens, ElementsAre(0, 1, 0));
  ASSERT_NE(history.find(0), nullptr);
  EXPECT_EQ(history.find(0)->output_count, 2u);
}

TEST(Chain, TheTokenDependsOnSeedChoiceAndPositionOnly) {
  std::mt19937 random(7);
  const std::vector<float> row(997, 0.5f), other = random_row(random, 997);
  const Chain chain{make({{"temperature", 1.5}, {"top_p", 0.9}})};
  Scratch used(997);
  SamplerState history;
  std::map<std::int32_t, int> seen;
  for (std::uint32_t i = 0; i < 50; ++i) {
    Scratch fresh(997 + i);
    const DrawSpec draw{i / 10, i % 3, i % 7};
    chain.sample(other, history, {9, 9, i}, used);
    const Choice a = chain.sample(row, history, draw, used);
    EXPECT_EQ(a.token, chain.sample(row, history, draw, fresh).token);
    ++seen[a.token];
  }
  EXPECT_GT(seen.size(), 40u);
}

// Pinned: a change of the generator, of the order or of the weights changes what users get for a
// seed.
TEST(Chain, KnownTokensForASeed) {
  std::vector<float> row(100);
  for (int i = 0; i < 100; ++i) row[i] = static_cast<float>((i * 37) % 100) * 0.0625f;
  std::vector<std::int32_t> tokens;
  for (std::uint64_t i = 0; i < 8; ++i)
    tokens.push_back(sample(make({{"temperature", 0.75}, {"top_p", 0.95}}), row, 1234, i).token);
  EXPECT_THAT(tokens, ElementsAre(97, 40, 89, 62, 35, 78, 54, 94));
}

// One of those that random_params leaves alone.
void add_further(std::mt19937& random, std::size_t vocab, SamplingParams& params) {
  const std::vector<std::vector<std::pair<const char*, double>>> sets = {
      {{"top_n_sigma", 1.5}},
      {{"top_h", 0.5}},
      {{"eta_cutoff", 0.01}},
      {{"epsilon_cutoff", 0.01}},
      {{"mirostat", 1}},
      {{"mirostat", 2}},
      {{"xtc_probability", 1}, {"xtc_threshold", 0.05}},
      {{"dynatemp_range", 1}, {"dynatemp_exponent", 2}},
      {{"adaptive_target", 0.5}},
      {{"dry_multiplier", 1}, {"dry_allowed_length", 1}},
      {{"no_repeat_ngram_size", 2}}};
  for (const auto& [name, value] : sets[random() % sets.size()])
    EXPECT_TRUE(params.set(name, value).ok()) << name;
  const auto id = [&] { return static_cast<std::int32_t>(random() % vocab); };
  if (random() % 3 == 0) {
    EXPECT_TRUE(params.set_bad_words({{id()}, {id(), id()}}).ok());
  }
  if (random() % 3 == 0) {
    EXPECT_TRUE(params.set_allowed_ids({id(), id(), id()}).ok());
  }
}

TEST(Chain, AllocatesNothing) {
  std::mt19937 random(11);
  constexpr std::size_t kVocab = 3001;
  const std::size_t start = allocation_count();
  Scratch scratch(kVocab);
  EXPECT_GT(allocation_count(), start);
  for (int i = 0; i < 500; ++i) {
    const std::vector<float> row = random_row(random, kVocab);
    SamplingParams params = random_params(random, kVocab);
    if (i >= 50) add_further(random, kVocab, params);
    const Chain chain(params);
    SamplerState history = chain.begin({}, 4, kVocab);
    const std::size_t before = allocation_count();
    for (std::uint64_t j = 0; j < 4; ++j) chain.sample(row, history, {1, 0, j}, scratch);
    EXPECT_EQ(allocation_count(), before);
  }
}

}  // namespace
}  // namespace vitrine
