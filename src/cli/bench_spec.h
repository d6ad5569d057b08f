// Speculation against none, measured: pairs of runs in turns, the same requests with guesses and without, on
// one engine.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"

namespace vitrine {

struct SpecBench {
  // Prompts, taken in turns by the sequences.
  std::vector<std::vector<std::int32_t>> prompts;
  int tokens = 64, sequences = 1, pairs = 3;
  SamplingParams sampling;
};

struct SpecReport {
  struct Pair {
    double without_s = 0, with_s = 0;  // from the first request to the end of the last
    double ratio() const { return with_s > 0 ? without_s / with_s : 0; }
  };
  std::vector<Pair> pairs;
  std::int64_t tokens = 0;  // of a run
  std::int64_t drafts = 0, drafted = 0, accepted = 0;
  std::vector<std::int64_t> accepted_by_place;
  std::int64_t decode_steps = 0, decode_steps_without = 0;
  double draft_s = 0;
};

// An error where the answers of a pair differ: then something is wrong with the engine.
Result<SpecReport> bench_spec(Engine& engine, const SpecBench& bench);
json::object spec_json(const Engine& engine, const SpecBench& bench, const SpecReport& report);
void print_spec(const Engine& engine, const SpecBench& bench, const SpecReport& report);

}  // namespace vitrine
