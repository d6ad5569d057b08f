// One measured run of `vitrine bench`: generations side by side, and figures from the step records.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/engine.h"

namespace vitrine {

double median(std::vector<double> values);

// Seconds of an op in a prompt and in a decode step.
struct OpRow {
  const char* op;
  double prefill = 0, decode = 0;
};

struct BenchRun {
  double prefill_tok_s, prefill_gflop_s, decode_tok_s, decode_gb_s;
  // Of a decode step: the engine thread's time, in all and by what it does, medians of the steps
  // (some record a graph, or lose the processor); the device's idle time.
  double host_us, plan_us, launch_us, results_us, commit_us, idle_share;
  std::uint64_t hash;      // of the logits after the first prompt
  std::vector<OpRow> ops;  // if they are timed; the slowest first
};

// As many generations as the engine has sequences, each of `prompt` tokens in and `tokens` out.
Result<BenchRun> bench_run(Engine& engine, int prompt, int tokens);

}  // namespace vitrine
