// The draw as a race: that it has one winner however it is run, and that this winner is a fair draw.
#include "sampling/race.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "sampling/chain.h"
#include "sampling/explain.h"

namespace vitrine {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

double noise_of(const DrawKey& key, std::int32_t id) {
  return id_noise(key, block_noise(key, id / kRaceBlock), id);
}

// The definition: everybody's time, the least of them.
Leader plain_race(std::span<const Candidate> candidates, const DrawKey& key) {
  Leader leader;
  for (const Candidate& c : candidates)
    if (c.weight > 0)
      leader = ahead(leader, {noise_of(key, c.id) / static_cast<double>(c.weight), c.logit, c.id});
  return leader;
}

std::vector<Candidate> weighed(std::span<const float> logits, double max, double scale) {
  std::vector<Candidate> out;
  for (std::size_t i = 0; i < logits.size(); ++i)
    out.push_back({logits[i], static_cast<std::int32_t>(i), weight((max - logits[i]) * scale)});
  return out;
}

// Rows flat and steep, with crowds of equal logits, with masked ones.
std::vector<float> random_row(std::mt19937& random, std::size_t vocab) {
  const float spreads[] = {0, 0.01f, 1, 4, 20};
  std::normal_distribution<float> normal(0, spreads[random() % 5] + 1e-20f);
  const bool ties = random() % 2, masks = random() % 3 == 0;
  std::vector<float> row(vocab);
  for (float& x : row) {
    x = normal(random);
    if (ties) x = std::round(x);
    if (masks && random() % 4 != 0) x = -kInf;
  }
  row[random() % vocab] = 1;
  return row;
}

TEST(Race, BlocksAndListsGiveTheWinnerOfTheDefinition) {
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    const std::size_t vocabs[] = {1, 2, 63, 64, 65, 1000, 1024, 5003};
    const std::vector<float> row = random_row(random, vocabs[random() % 8]);
    const double max = *std::max_element(row.begin(), row.end());
    const double scale = (random() % 40 + 1) / 20.0;
    const DrawKey key{random(), random(), static_cast<std::uint32_t>(random() % 3)};
    std::vector<Candidate> all = weighed(row, max, scale);
    const Leader expected = plain_race(all, key);
    ASSERT_GE(expected.id, 0);
    const auto expect = [&](const Leader& got, const char* how) {
      EXPECT_EQ(got.id, expected.id) << how << ", case " << i;
      EXPECT_EQ(got.time, expected.time) << how << ", case " << i;
    };
    expect(race_all(row, max, scale, key), "all");
    expect(ManyRaces(all).race(key), "again and again");
    std::shuffle(all.begin(), all.end(), random);
    expect(race_some(all, key), "in another order");
    const auto runs = tell_race(all, key);
    ASSERT_EQ(runs.size(), all.size());
    EXPECT_EQ(runs[0].id, expected.id);
    for (const auto& run : runs) EXPECT_EQ(run.noise / static_cast<double>(run.weight), run.time);
  }
}

TEST(Race, TiesGoByLogitThenId) {
  const Leader a{1, 3, 9}, b{1, 2, 4}, c{1, 3, 7}, nobody;
  EXPECT_EQ(ahead(a, b).id, 9);
  EXPECT_EQ(ahead(b, a).id, 9);
  EXPECT_EQ(ahead(a, c).id, 7);
  EXPECT_EQ(ahead(c, a).id, 7);
  EXPECT_EQ(ahead({0.5, -1, 1}, a).id, 1);
  EXPECT_EQ(ahead(nobody, a).id, 9);
  EXPECT_EQ(ahead(a, nobody).id, 9);
}

// Noise is exponential: of all ids, of those that have the least of their block, and the least ones.
TEST(Race, NoiseIsExponentialAndABlockIsWhatItSays) {
  constexpr int kBlocks = 4000;
  std::vector<double> all, least;
  std::vector<int> owners(kRaceBlock);
  for (int block = 0; block < kBlocks; ++block) {
    const DrawKey key{5, static_cast<std::uint64_t>(block % 10), 1};
    const BlockNoise noise = block_noise(key, block);
    double smallest = kInf;
    for (int i = 0; i < kRaceBlock; ++i) {
      all.push_back(id_noise(key, noise, block * kRaceBlock + i));
      smallest = std::min(smallest, all.back());
    }
    ASSERT_EQ(smallest, noise.least);
    ASSERT_EQ(id_noise(key, noise, noise.id), noise.least);
    ASSERT_EQ(noise.id / kRaceBlock, block);
    least.push_back(noise.least * kRaceBlock);
    ++owners[static_cast<std::size_t>(noise.id % kRaceBlock)];
  }
  // Kolmogorov and Smirnov: 1.95 / sqrt(n) is passed once in a thousand times.
  const auto distance = [](std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto n = static_cast<double>(values.size());
    double most = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double p = -std::expm1(-values[i]);
      most = std::max({most, std::fabs(p - static_cast<double>(i) / n),
                       std::fabs(p - static_cast<double>(i + 1) / n)});
    }
    return most * std::sqrt(n);
  };
  EXPECT_LT(distance(all), 1.95);
  EXPECT_LT(distance(least), 1.95);
  double chi = 0;
  for (const int n : owners) {
    const double expected = static_cast<double>(kBlocks) / kRaceBlock;
    chi += (n - expected) * (n - expected) / expected;
  }
  EXPECT_LT(chi, 103.4) << "the 99.9 % quantile with 63 degrees of freedom";
}

// ---- fairness, over many draws

constexpr int kDraws = 200'000;

// The quantile that chi-square passes once in a thousand times (Wilson and Hilferty).
double chi_limit(int freedom) {
  const double a = 2.0 / (9.0 * freedom);
  return freedom * std::pow(1 - a + 3.09 * std::sqrt(a), 3);
}

// Counts against probabilities; cells that expect fewer than ten are put together.
void expect_fits(const std::vector<int>& counts, const std::vector<double>& p, const char* what) {
  double n = 0, chi = 0, rest_p = 0, rest_n = 0;
  for (const int c : counts) n += c;
  int cells = 0;
  const auto add = [&](double count, double expected) {
    chi += (count - expected) * (count - expected) / expected, ++cells;
  };
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) {
      EXPECT_EQ(counts[i], 0) << what << ": " << i;
    } else if (p[i] * n < 10) {
      rest_p += p[i], rest_n += counts[i];
    } else {
      add(counts[i], p[i] * n);
    }
  }
  if (rest_p * n >= 1) add(rest_n, rest_p * n);
  ASSERT_GT(cells, 1) << what;
  EXPECT_LT(chi, chi_limit(cells - 1)) << what << ": " << cells << " cells";
}

SamplingParams make(std::map<std::string, double> values) {
  SamplingParams out;
  for (const auto& [name, value] : values) EXPECT_TRUE(out.set(name, value).ok()) << name;
  return out;
}

// What is left of `row` after the chain, as probabilities.
std::vector<double> distribution(const Chain& chain, std::span<const float> row) {
  Scratch scratch(row.size());
  const Explanation told = chain.explain(row, SamplerState(), {1, 0, 1}, 1, scratch);
  std::vector<double> p(row.size(), 0.0);
  for (const Candidate& c : told.last)
    p[static_cast<std::size_t>(c.id)] =
        static_cast<double>(c.weight) / static_cast<double>(told.total());
  return p;
}

// A token's position, choice and seed, from the number of the draw.
using Spec = DrawSpec (*)(std::uint64_t);

std::vector<std::int32_t> draw_many(const Chain& chain, std::span<const float> row, Spec spec) {
  Scratch scratch(row.size());
  SamplerState history;
  std::vector<std::int32_t> out;
  for (std::uint64_t i = 0; i < kDraws; ++i)
    out.push_back(chain.sample(row, history, spec(i), scratch).token);
  return out;
}

constexpr Spec kPositions = [](std::uint64_t i) { return DrawSpec{2024, 0, i, false}; };
constexpr Spec kChoices = [](std::uint64_t i) {
  return DrawSpec{7, static_cast<std::uint32_t>(i), 12, false};
};
constexpr Spec kSeeds = [](std::uint64_t i) { return DrawSpec{i, 1, 3, false}; };

TEST(Race, WinnersFollowTheDistribution) {
  std::vector<float> few, steep, flat, wide;
  for (const double p : {0.02, 0.3, 0.08, 0.25, 0.05, 0.1, 0.05, 0.15})
    few.push_back(static_cast<float>(std::log(p)) + 3);
  for (int i = 0; i < 200; ++i) steep.push_back(static_cast<float>((i * 37) % 200) * -0.1f);
  flat.assign(130, 0.25f);  // two blocks, and two ids of a third
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 2);
  for (int i = 0; i < 1000; ++i) wide.push_back(normal(random));

  const struct {
    const char* name;
    std::map<std::string, double> params;
    const std::vector<float>& row;
    Spec spec;
  } cases[] = {
      {"few", {}, few, kPositions},
      {"few, by seed", {}, few, kSeeds},
      {"few, by choice", {}, few, kChoices},
      {"few, cold", {{"temperature", 0.5}}, few, kPositions},
      {"few, top_p", {{"top_p", 0.75}}, few, kPositions},
      {"steep", {}, steep, kPositions},
      {"steep, hot", {{"temperature", 1.7}}, steep, kChoices},
      {"steep, top_k", {{"top_k", 20}}, steep, kPositions},
      {"flat", {}, flat, kPositions},
      {"flat, by seed", {}, flat, kSeeds},
      {"wide", {}, wide, kPositions},
      {"wide, by choice", {}, wide, kChoices},
      {"wide, all cuts",
       {{"temperature", 0.8}, {"top_k", 60}, {"top_p", 0.95}, {"min_p", 0.02}},
       wide,
       kPositions},
      {"wide, typical_p", {{"typical_p", 0.7}}, wide, kSeeds},
      {"wide, min_p", {{"min_p", 0.05}}, wide, kPositions},
  };
  for (const auto& c : cases) {
    const Chain chain(make(c.params));
    std::vector<int> counts(c.row.size());
    for (const std::int32_t id : draw_many(chain, c.row, c.spec))
      ++counts[static_cast<std::size_t>(id)];
    expect_fits(counts, distribution(chain, c.row), c.name);
  }
}

// Pairs of draws that share all but one part of the key: each pair of tokens comes as often as the
// product of their probabilities says.
TEST(Race, NeighboursAreIndependent) {
  const std::vector<double> p = {0.4, 0.3, 0.15, 0.1, 0.05};
  std::vector<float> row;
  for (const double x : p) row.push_back(static_cast<float>(std::log(x)));
  const Chain chain{SamplingParams()};
  std::vector<double> pairs;
  for (const double x : p)
    for (const double y : p) pairs.push_back(x * y);
  const auto expect_independent = [&](Spec first, Spec second, const char* what) {
    const auto a = draw_many(chain, row, first), b = draw_many(chain, row, second);
    std::vector<int> counts(pairs.size());
    for (int i = 0; i < kDraws; ++i)
      ++counts[static_cast<std::size_t>(a[i]) * p.size() + static_cast<std::size_t>(b[i])];
    expect_fits(counts, pairs, what);
  };
  // Even numbers and the odd ones after them, so that no draw is in two pairs.
  expect_independent(
      [](std::uint64_t i) {
        return DrawSpec{9, 0, 2 * i, false};
      },
      [](std::uint64_t i) {
        return DrawSpec{9, 0, 2 * i + 1, false};
      },
      "neighbouring positions");
  expect_independent(
      [](std::uint64_t i) {
        return DrawSpec{9, 0, i, false};
      },
      [](std::uint64_t i) {
        return DrawSpec{9, 1, i, false};
      },
      "neighbouring choices");
  expect_independent(
      [](std::uint64_t i) {
        return DrawSpec{2 * i, 0, 5, false};
      },
      [](std::uint64_t i) {
        return DrawSpec{2 * i + 1, 0, 5, false};
      },
      "neighbouring seeds");
  expect_independent(
      [](std::uint64_t i) {
        return DrawSpec{9, 0, i, false};
      },
      [](std::uint64_t i) {
        return DrawSpec{9, 0, i + (1ULL << 32), false};
      },
      "positions that differ in the upper half");
}

// Two models that see the same noise draw the same token with the probability
// sum over j of 1 / sum over i of max(p_i / p_j, q_i / q_j).
TEST(Race, SharedNoiseMatchesAsOftenAsTheFormulaSays) {
  std::mt19937 random(8);
  std::normal_distribution<float> normal(0, 1);
  const auto check = [&](std::size_t vocab, float apart, std::map<std::string, double> params) {
    std::vector<float> row(vocab), other(vocab);
    for (std::size_t i = 0; i < vocab; ++i) {
      row[i] = 2 * normal(random);
      other[i] = row[i] + apart * normal(random);
    }
    const Chain chain(make(params));
    const std::vector<double> p = distribution(chain, row), q = distribution(chain, other);
    double expected = 0;
    for (std::size_t j = 0; j < vocab; ++j) {
      if (p[j] == 0 || q[j] == 0) continue;
      double sum = 0;
      for (std::size_t i = 0; i < vocab; ++i) sum += std::max(p[i] / p[j], q[i] / q[j]);
      expected += 1 / sum;
    }
    const auto a = draw_many(chain, row, kPositions), b = draw_many(chain, other, kPositions);
    int same = 0;
    for (int i = 0; i < kDraws; ++i) same += a[i] == b[i];
    const double sigma = std::sqrt(expected * (1 - expected) / kDraws);
    EXPECT_GT(expected, 0.05);
    EXPECT_LT(expected, 0.95);
    EXPECT_NEAR(static_cast<double>(same) / kDraws, expected, 4 * sigma)
        << vocab << " tokens, " << apart << " apart";
  };
  check(8, 1, {});
  check(300, 0.5, {});
  check(300, 1.5, {});
  check(300, 1, {{"temperature", 0.7}, {"top_k", 40}, {"top_p", 0.95}, {"min_p", 0.02}});
}

}  // namespace
}  // namespace vitrine
