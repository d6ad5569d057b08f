// From a model file and options to everything an engine computes with.
#pragma once

#include <memory>

#include "engine/draft_model.h"
#include "engine/info.h"
#include "engine/memory_plan.h"
#include "engine/options.h"
#include "engine/runner.h"
#include "engine/scorer.h"
#include "formats/model_file.h"
#include "kernels/backend.h"
#include "nn/model.h"

namespace vitrine {

// Refers to itself: it stays where it was made.
struct LoadedModel {
  std::shared_ptr<const ModelFile> file;  // weights may be views of it
  EngineOptions options;                  // with what they left to the machine filled in
  MemoryPlan plan;
  EngineInfo info;
  DType matmul_type = DType::kF32;  // of most of the weights
  std::unique_ptr<Backend> backend;
  std::unique_ptr<DraftModel> draft;  // null: none
  std::unique_ptr<Model> model;
  std::unique_ptr<Scorer> scorer;
  std::unique_ptr<Runner> runner;
};

// Loads the model and allocates all that steps need. What does not fit is refused before anything
// is loaded.
Result<std::unique_ptr<LoadedModel>> load_for_serving(std::shared_ptr<const ModelFile> file,
                                                      EngineOptions options);
// The same onto a backend that exists already.
Result<std::unique_ptr<LoadedModel>> load_onto(std::unique_ptr<Backend> backend,
                                               std::shared_ptr<const ModelFile> file,
                                               EngineOptions options);

}  // namespace vitrine
