#include "draft/policy.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "support/allocation_count.h"

namespace vitrine {
namespace {

std::vector<Guess> guesses(std::initializer_list<float> probabilities) {
  std::vector<Guess> out;
  for (const float probability : probabilities) out.push_back({7, probability});
  return out;
}

// A policy that has seen a step of each of these sizes: {rows, ns}.
DraftPolicy measured(int seats, std::vector<std::pair<int, double>> steps) {
  PolicyOptions options{.seats = seats, .sources = 2, .sizes = {}};
  for (const auto& [rows, ns] : steps) options.sizes.push_back(rows);
  DraftPolicy policy(options);
  for (const auto& [rows, ns] : steps) policy.observe({.rows = rows}, ns, {});
  return policy;
}

TEST(DraftPolicy, TakesTheBestNumber) {
  DraftPolicy policy = measured(1, {{1, 100}, {2, 110}, {3, 120}, {4, 180}});
  const std::vector<Guess> draft = guesses({0.9, 0.5, 0.3});
  std::vector<DraftCandidate> candidates = {{.guesses = draft}};
  // (1 + .9) / 1.1 = 1.73, (1 + .9 + .5) / 1.2 = 2, (1 + .9 + .5 + .3) / 1.8 = 1.5
  EXPECT_EQ(policy.plan({.rows = 1, .decoding = 1, .room = 9}, candidates), 2);
  EXPECT_EQ(candidates[0].take, 2);
  EXPECT_EQ(policy.plan({.rows = 1, .decoding = 1, .room = 1}, candidates), 1);
  EXPECT_EQ(policy.plan({.rows = 1, .decoding = 1, .room = 0}, candidates), 0);
  EXPECT_EQ(candidates[0].take, 0);
  DraftPolicy dear = measured(1, {{1, 100}, {2, 190}});
  EXPECT_EQ(dear.plan({.rows = 1, .decoding = 1, .room = 9}, candidates), 0)
      << "it could lose more than the ledger has room for";
}

// Where steps overlap, one that waited for guesses takes longer than others: that is a loss, and no measure of a
// step without guesses.
TEST(DraftPolicy, WaitingInVainIsALoss) {
  DraftPolicy policy = measured(1, {{1, 100}, {2, 104}});
  EXPECT_DOUBLE_EQ(policy.observe({.rows = 1, .decoding = 1, .waited = true}, 110, {}), 10);
  EXPECT_DOUBLE_EQ(policy.observe({.rows = 1, .decoding = 1, .waited = true}, 110, {}), 10);
  EXPECT_DOUBLE_EQ(policy.observe({.rows = 1, .decoding = 1}, 110, {}), 0);
  for (int i = 0; i < 100; ++i) policy.observe({.rows = 1, .decoding = 1, .waited = true}, 110, {});
  EXPECT_FALSE(policy.drafts()) << "a tenth of each step is lost";
}

TEST(DraftPolicy, TakesNoneForLessThanATwentieth) {
  DraftPolicy policy = measured(1, {{1, 100}, {2, 110}});
  const auto taken = [&](float probability, double drafting) {
    const std::vector<Guess> draft = guesses({probability});
    DraftCandidate candidate{.guesses = draft};
    return policy.plan({.rows = 1, .decoding = 1, .room = 9, .drafting_ns = drafting},
                       {&candidate, 1});
  };
  EXPECT_EQ(taken(0.15f, 0), 0);  // 1.15 / 1.1 = 1.045
  EXPECT_EQ(taken(0.16f, 0), 1);  // 1.16 / 1.1 = 1.055
  EXPECT_EQ(taken(0.16f, 5), 1);  // (1.16 / 1.15) / (1 / 1.05) = 1.059: drafting is spent
}

// Drafting that is still to be done counts.
TEST(DraftPolicy, DraftsAsDeepAsItIsWorth) {
  DraftPolicy policy = measured(2, {{1, 100}, {2, 102}, {3, 104}, {4, 106}, {5, 108}, {16, 200}});
  EXPECT_EQ(policy.depth({.rows = 1, .decoding = 1, .room = 9}, {}, {}), 0) << "little is known";
  for (int i = 0; i < 200; ++i) policy.observe({.rows = 1, .decoding = 1}, 100, {});
  const DraftCandidate one{.guesses = {}};
  const StepShape shape{.rows = 1, .decoding = 1, .room = 9};
  const auto depth = [&](double first, double next) {
    return policy.depth(shape, {&one, 1}, {.first_ns = first, .next_ns = next});
  };
  EXPECT_GE(depth(0, 0), 4);
  EXPECT_EQ(depth(10, 40), 1) << "(1 + .75) / 1.12 = 1.56, (1 + .75 + .56) / 1.54 = 1.5";
  EXPECT_EQ(depth(70, 70), 0) << "(1 + .75) / 1.72 = 1.02";
  EXPECT_EQ(policy.depth({.rows = 1, .decoding = 1, .room = 0}, {&one, 1}, {}), 0);
  EXPECT_EQ(policy.depth(shape, {}, {}), 0);
  // The places behind one that is always wrong are not reached.
  const std::vector<Guess> draft = guesses({0.9, 0.8, 0.7});
  const int before = depth(5, 5);
  for (int i = 0; i < 30; ++i) {
    const VerifiedDraft verified{.guesses = draft, .accepted = 1};
    policy.observe({.rows = 1, .decoding = 1}, 104, {&verified, 1});
  }
  EXPECT_LT(depth(5, 5), before);
  EXPECT_GT(depth(5, 5), 0);
  EXPECT_LT(policy.promise(0, 0, 3), 1.5);
  EXPECT_GT(policy.promise(0, 1, 3), 1.5) << "another source";
}

TEST(DraftPolicy, TakesTheLikeliestOfAll) {
  DraftPolicy policy = measured(4, {{3, 100}, {6, 100}, {7, 200}});
  const std::vector<Guess> a = guesses({0.9, 0.4, 0.3}), b = guesses({0.5, 0.5, 0.45});
  std::vector<DraftCandidate> candidates = {{.seat = 1, .guesses = a}, {.seat = 3, .guesses = b}};
  EXPECT_EQ(policy.plan({.rows = 3, .decoding = 3, .room = 9}, candidates), 3);
  EXPECT_EQ(candidates[0].take, 1);
  EXPECT_EQ(candidates[1].take, 2);
}

TEST(DraftPolicy, TakesNoneWhereRowsCostInProportion) {
  DraftPolicy policy = measured(2, {{8, 800}, {9, 900}, {10, 1000}, {16, 1600}});
  const std::vector<Guess> draft = guesses({1, 1, 1, 1});
  std::vector<DraftCandidate> candidates = {{.guesses = draft}, {.seat = 1, .guesses = draft}};
  EXPECT_EQ(policy.plan({.rows = 8, .decoding = 8, .room = 9}, candidates), 0);
}

// A prompt is computed beside one sequence: what its rows cost is not saved by a guess.
TEST(DraftPolicy, ATokenIsWorthWhatDecodingItCosts) {
  DraftPolicy policy = measured(1, {{1, 100}, {100, 1000}, {101, 1010}, {102, 1020}});
  const std::vector<Guess> draft = guesses({0.9, 0.8});
  std::vector<DraftCandidate> candidates = {{.guesses = draft}};
  // (1000 + .9 * 100 + .8 * 100) / 1020 = 1.15; as (1 + .9 + .8) / 1.02 it would be 2.6.
  EXPECT_EQ(policy.plan({.rows = 100, .decoding = 1, .room = 9}, candidates), 2);
  const std::vector<Guess> worse = guesses({0.4, 0.2});
  candidates[0].guesses = worse;
  EXPECT_EQ(policy.plan({.rows = 100, .decoding = 1, .room = 9}, candidates), 0);
  EXPECT_EQ(policy.plan({.rows = 100, .room = 9}, candidates), 0) << "nothing decodes";
}

TEST(DraftPolicy, CorrectsTheSourceByWhatBecameOfItsGuesses) {
  DraftPolicy policy = measured(2, {{1, 100}, {8, 100}});
  EXPECT_DOUBLE_EQ(policy.acceptance(0, 0, 0), 1);
  const std::vector<Guess> draft = guesses({1, 1, 1});
  const VerifiedDraft verified{.guesses = draft, .accepted = 1};
  EXPECT_DOUBLE_EQ(policy.observe({.rows = 1, .decoding = 1}, 100, {&verified, 1}), -100);
  EXPECT_DOUBLE_EQ(policy.acceptance(0, 0, 0), 1);
  // One of one was wrong: 8 / 9 for all, 8 / 9 of that for the sequence.
  EXPECT_NEAR(policy.acceptance(1, 0, 1), 8. / 9, 1e-9);
  EXPECT_NEAR(policy.acceptance(0, 0, 1), 64. / 81, 1e-9);
  EXPECT_DOUBLE_EQ(policy.acceptance(0, 0, 2), 1) << "not tried";
  policy.begin(0);
  EXPECT_NEAR(policy.acceptance(0, 0, 1), 8. / 9, 1e-9);
  for (int i = 0; i < 5000; ++i) policy.observe({.rows = 1, .decoding = 1}, 100, {});
  EXPECT_NEAR(policy.acceptance(0, 0, 1), 1, 0.01) << "it fades";
  const VerifiedDraft ended{.guesses = draft, .accepted = 1, .ended = true};
  policy.observe({.rows = 1, .decoding = 1}, 100, {&ended, 1});
  EXPECT_NEAR(policy.acceptance(0, 0, 1), 1, 0.01) << "not tried";
}

TEST(DraftPolicy, ModestSourcesAreTakenAtTheirWord) {
  DraftPolicy policy = measured(1, {{1, 100}, {8, 100}});
  const std::vector<Guess> draft = guesses({0.25});
  std::mt19937 rng(1);
  for (int i = 0; i < 1000; ++i) {
    const VerifiedDraft verified{.guesses = draft, .accepted = i % 4 == 0};
    policy.observe({.rows = 1, .decoding = 1}, 100, {&verified, 1});
  }
  EXPECT_NEAR(policy.acceptance(0, 0, 0), 1, 0.1);
}

// ---- workloads

struct Workload {
  int sequences = 1;
  double right = 0.5;    // chance of a guess
  float claimed = 0.9f;  // what the source says
  std::function<double(int)> cost;
  double drafting = 0;
  double noise = 0;
  // What a draft model takes for a guess of every sequence; 0: drafting takes what is said above.
  double pass = 0;
};

struct Outcome {
  double time = 0, plain = 0;  // with speculation, and what the same tokens take without
  int drafted = 0, late = 0;   // guesses computed: in all, in the last tenth
  int deep = 0;                // passes of a draft model
  double loss() const { return time / plain - 1; }
};

class Simulation {
 public:
  explicit Simulation(int seats)
      : policy_({.seats = seats, .sizes = StepCost::default_sizes(600)}) {}

  Outcome run(const Workload& load, int steps) {
    Outcome out;
    std::vector<Guess> draft;
    float probability = 1;
    for (int i = 0; i < 8; ++i) draft.push_back({1, probability *= load.claimed});
    std::vector<DraftCandidate> candidates(load.sequences);
    std::vector<VerifiedDraft> verified;
    verified.reserve(load.sequences);
    const std::size_t before = allocation_count();
    for (int step = 0; step < steps; ++step) {
      StepShape shape{.rows = load.sequences, .decoding = load.sequences, .room = 512};
      verified.clear();
      int rows = shape.rows, tokens = load.sequences;
      if (policy_.drafts()) {
        std::span<const Guess> guesses = draft;
        shape.drafting_ns = load.drafting;
        for (int i = 0; i < load.sequences; ++i) candidates[i] = {.seat = i, .guesses = {}};
        if (load.pass > 0) {
          const int depth =
              policy_.depth(shape, candidates, {.first_ns = load.pass, .next_ns = load.pass});
          guesses = guesses.first(static_cast<std::size_t>(depth));
          shape.drafting_ns = depth * load.pass;
          out.deep += depth;
        }
        for (DraftCandidate& c : candidates) c.guesses = guesses;
        const int planned = policy_.plan(shape, candidates);
        rows += planned, out.drafted += planned;
        if (step >= steps - steps / 10) out.late += planned;
        for (const DraftCandidate& c : candidates) {
          if (c.take == 0) continue;
          int accepted = 0;
          while (accepted < c.take && chance() < load.right) ++accepted;
          tokens += accepted;
          verified.push_back(
              {.seat = c.seat, .guesses = c.guesses.first(c.take), .accepted = accepted});
        }
      }
      const double wall = load.cost(rows) * (1 + load.noise * (2 * chance() - 1));
      policy_.observe(shape, wall, verified);
      out.time += wall + shape.drafting_ns;
      out.plain += tokens * load.cost(load.sequences) / load.sequences;
    }
    EXPECT_EQ(allocation_count(), before);
    return out;
  }
  const DraftPolicy& policy() const { return policy_; }
  void begin(int seat) { policy_.begin(seat); }

 private:
  double chance() { return static_cast<double>(rng_()) / 4294967296.0; }
  DraftPolicy policy_;
  std::mt19937 rng_{11};
};

double flat(int rows) { return 1000 + rows; }
double proportional(int rows) { return 100.0 * rows; }
double kneed(int rows) { return 1000 + 60.0 * std::max(0, rows - 8); }
double steep(int rows) { return 1000 + 400.0 * (rows - 1); }

TEST(DraftPolicyWorkload, WrongGuessesCostNextToNothing) {
  for (const auto cost : {flat, proportional, kneed, steep})
    for (const int sequences : {1, 4, 16, 64})
      for (const double right : {0.0, 0.1})
        for (const double drafting : {0.0, 30.0})
          for (const double noise : {0.0, 0.1})
            for (const int steps : {150, 1000, 4000}) {
              Simulation simulation(sequences);
              const Outcome out =
                  simulation.run({sequences, right, 0.99f, cost, drafting, noise}, steps);
              EXPECT_LT(out.loss(), 0.03)
                  << sequences << " sequences, " << right << " right, drafting " << drafting
                  << ", noise " << noise << ", " << steps << " steps, step of 2: " << cost(2);
            }
}

TEST(DraftPolicyWorkload, TurnsItselfOffWhenNothingIsRight) {
  Simulation simulation(1);
  const Outcome out = simulation.run({1, 0.0, 0.99f, steep, 30, 0}, 20000);
  EXPECT_GT(simulation.policy().ledger().times_off(), 0u);
  EXPECT_LT(out.loss(), 0.01);
  EXPECT_LT(out.late, 20);
}

TEST(DraftPolicyWorkload, WinsWhereGuessesAreRight) {
  for (const int sequences : {1, 4}) {
    Simulation simulation(sequences);
    EXPECT_LT(simulation.run({sequences, 0.8, 0.8f, flat, 10, 0.05}, 2000).loss(), -0.6);
    EXPECT_EQ(simulation.policy().ledger().times_off(), 0u);
  }
  Simulation simulation(1);
  EXPECT_LT(simulation.run({1, 0.9, 0.9f, kneed, 10, 0.05}, 200).loss(), -0.6) << "at once";
}

TEST(DraftPolicyWorkload, StopsUnderLoad) {
  Simulation simulation(64);
  const Workload light{2, 0.8, 0.8f, kneed, 0, 0.02}, heavy{64, 0.8, 0.8f, kneed, 0, 0.02};
  EXPECT_LT(simulation.run(light, 1000).loss(), -0.4);
  const Outcome out = simulation.run(heavy, 3000);
  EXPECT_EQ(out.late, 0);
  EXPECT_LT(out.loss(), 0.01);
  EXPECT_LT(simulation.run(light, 3000).loss(), -0.3) << "and starts again";
}

TEST(DraftPolicyWorkload, ComesBackWhenTheTextChanges) {
  Simulation simulation(1);
  simulation.run({1, 0.0, 0.9f, flat, 30, 0}, 5000);
  const Outcome out = simulation.run({1, 0.9, 0.9f, flat, 30, 0}, 10000);
  EXPECT_GT(out.late, 1000);
  EXPECT_LT(out.loss(), -0.3);
}

// Whatever the draft model is and takes.
TEST(DraftPolicyWorkload, ADraftModelCostsNextToNothing) {
  for (const auto cost : {flat, proportional, kneed, steep})
    for (const int sequences : {1, 4, 16, 64})
      for (const double right : {0.0, 0.2, 0.5, 0.8})
        for (const double pass : {0.05, 0.2, 0.6})
          for (const int steps : {150, 1000, 4000}) {
            Workload load{sequences, right, 0.9f, cost, 0, 0.1};
            load.pass = pass * cost(sequences);
            const Outcome out = Simulation(sequences).run(load, steps);
            EXPECT_LT(out.loss(), 0.03) << sequences << " sequences, " << right << " right, pass "
                                        << pass << ", " << steps << " steps, of 2: " << cost(2);
          }
}

TEST(DraftPolicyWorkload, ADraftModelWritesAsFarAsItIsRight) {
  const auto run = [](double right, double pass) {
    Workload load{1, right, 0.95f, flat, 0, 0.05};
    load.pass = pass;
    return Simulation(1).run(load, 3000);
  };
  EXPECT_LT(run(0.8, 100).loss(), -0.4);
  EXPECT_LT(run(0.6, 100).loss(), -0.3);
  const double far = run(0.9, 100).deep / 3000.0, near = run(0.4, 100).deep / 3000.0;
  EXPECT_GT(far, 5);
  EXPECT_LT(near, 3);
  EXPECT_LT(run(0.6, 900).deep, 300) << "as slow as the model itself";
}

// What a step takes without guesses changes with contexts and clocks, also while every step has guesses. Over time
// nothing is lost by that, whatever was won before.
TEST(DraftPolicyWorkload, NoticesThatStepsTakeAnotherTime) {
  const auto long_context = [](int rows) { return 2000 + 50.0 * (rows - 1); };
  const auto short_context = [](int rows) { return 500 + 133.0 * (rows - 1); };
  const auto slow_machine = [=](int rows) { return 2 * short_context(rows); };
  for (const auto& before : {std::function<double(int)>(long_context), {slow_machine}})
    for (const int first : {100, 1000, 5000})
      for (const double right : {0.0, 0.1, 0.2, 0.3})
        for (const bool anew : {false, true}) {
          Simulation simulation(1);
          simulation.run({1, 0.8, 0.9f, before, 0, 0.02}, first);
          if (anew) simulation.begin(0);
          const Outcome out = simulation.run({1, right, 0.9f, short_context, 0, 0.02}, 6000);
          EXPECT_LT(out.loss(), 0.03) << first << " steps before, " << right << " right, " << anew;
        }
}

TEST(DraftPolicyWorkload, SameInputsSameDecisions) {
  Simulation a(8), b(8);
  const Workload load{8, 0.6, 0.9f, kneed, 5, 0.1};
  const Outcome x = a.run(load, 3000), y = b.run(load, 3000);
  EXPECT_EQ(x.time, y.time);
  EXPECT_EQ(x.drafted, y.drafted);
}

}  // namespace
}  // namespace vitrine
