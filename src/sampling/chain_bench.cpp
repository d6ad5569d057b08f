// What a token costs to draw from a vocabulary of 128,256, by the transforms in use.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>

#include "sampling/chain.h"

namespace vitrine {
namespace {

constexpr std::size_t kVocab = 128'256;

// Normal logits, and some far above the rest as where a text goes on; the best has about half of
// the probability at temperature 1.
std::vector<float> make_logits(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 2.5f);
  std::vector<float> logits(kVocab);
  for (float& x : logits) x = normal(random);
  for (int i = 0; i < 20; ++i) logits[random() % kVocab] = 18.0f - 0.7f * static_cast<float>(i);
  return logits;
}

struct Setting {
  const char* name;
  double temperature, top_k, top_p, min_p;
  bool logprob = false;
};

constexpr Setting kSettings[] = {
    {"greedy", 0, 0, 1, 0},
    {"temperature", 0.8, 0, 1, 0},
    {"top_k", 0.8, 40, 1, 0},
    {"top_p", 0.8, 0, 0.95, 0},
    {"min_p", 0.8, 0, 1, 0.05},
    {"top_p min_p", 0.8, 0, 0.95, 0.05},
    {"top_k top_p min_p", 0.8, 40, 0.95, 0.05},
    {"top_k top_p min_p, logprob", 0.8, 40, 0.95, 0.05, true},
};

void sample(benchmark::State& state, Setting s) {
  std::vector<std::vector<float>> rows;
  for (unsigned i = 0; i < 8; ++i) rows.push_back(make_logits(i));
  SamplingParams params;
  for (auto [name, value] : {std::pair{"temperature", s.temperature},
                             {"top_k", s.top_k},
                             {"top_p", s.top_p},
                             {"min_p", s.min_p}})
    if (!params.set(name, value).ok()) return state.SkipWithError(name);
  Chain chain(params);
  Scratch scratch(kVocab);
  SamplerState history;
  std::uint64_t position = 0;
  for (auto _ : state) {
    DrawSpec draw{1, 0, position, s.logprob};
    benchmark::DoNotOptimize(chain.sample(rows[position % rows.size()], history, draw, scratch));
    ++position;
  }
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const Setting& s : kSettings)
    benchmark::RegisterBenchmark(s.name, sample, s)->Unit(benchmark::kMicrosecond);
  return true;
}();

}  // namespace
}  // namespace vitrine
