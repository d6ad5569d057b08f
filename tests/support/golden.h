// The golden fixtures, and running a model through the engine.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "support/files.h"

namespace vitrine::test {

// One folder of fixtures/golden: a tiny model and what HF transformers computes with it.
struct Golden {
  std::string name, folder;
  std::vector<std::int32_t> ids, greedy;
  std::map<int, std::vector<float>> logits;  // by position
  std::vector<double> margins;               // of greedy: best logit minus second best
  int context = 0;                           // that the reference holds for; 0: any
};
// The names of all folders, sorted.
std::vector<std::string> golden_names();
Golden load_golden(const std::string& name);

using ModelPtr = std::shared_ptr<const ModelFile>;
// These fail the test and end the program when the model cannot be opened or run.
ModelPtr open_model(const std::string& path);
ModelPtr open_image(const Bytes& image);  // `image` must outlive the model

struct Outcome {
  std::map<int, std::vector<float>> logits;
  std::vector<std::int32_t> tokens;
};
// `ids` through an engine of its own; logits of every position, and `max_tokens` greedy ones.
Outcome run_model(const ModelPtr& model, const EngineOptions& options,
                  const std::vector<std::int32_t>& ids, int max_tokens);

// Instruction sets of the cpu backend that this machine has.
std::vector<std::string> cpu_isas();
EngineOptions ref_options();
EngineOptions cpu_options(const std::string& isa, DType kv_dtype);
// Null where there is a GPU that the cuda backend can use; otherwise why not.
const char* no_cuda();
EngineOptions cuda_options(DType kv_dtype, bool deterministic = false);

// Largest difference over the positions that both have; infinite when they share none.
double max_difference(const std::map<int, std::vector<float>>& a,
                      const std::map<int, std::vector<float>>& b);
::testing::AssertionResult same_bits(const Outcome& a, const Outcome& b);
// Every reference logit within `tolerance`; greedy tokens equal up to the first difference where
// the reference's margin is at most `margin`.
::testing::AssertionResult agrees(const Golden& golden, const Outcome& outcome, double tolerance,
                                  double margin);

}  // namespace vitrine::test
