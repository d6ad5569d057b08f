// Makes the memory plan, by loading the model onto a device that only counts, so the plan and the
// load cannot disagree.
#pragma once

#include <cstdint>

#include "engine/memory_plan.h"
#include "engine/options.h"
#include "formats/model_file.h"
#include "kernels/backend.h"
#include "nn/model.h"

namespace vitrine {

BackendOptions backend_options(const EngineOptions& options);
// An error when the plan is larger than what the device has free: the host's memory comes page by
// page, and running out of it later would end the process.
Status check_memory(const MemoryPlan& plan, const Device& device);
// The context that the options and the model give; an error names both when they disagree.
Result<int> choose_context(const EngineOptions& options, int model_context);
// Fills in what the options leave to the machine (sequences, kv_tokens): half of `free`, the bytes
// that weights and activations leave, goes to the pool.
void choose_sizes(EngineOptions& options, std::int64_t free, std::int64_t bytes_per_token,
                  int context);
// Groups and KV sizes for a loaded (or only counted) model. An error where the device cannot store
// what a layer asks for.
Result<MemoryPlan> plan_cache(const Model& model, const Device& device,
                              const EngineOptions& options, int context);
// For a model that will be loaded onto `device`; nothing is loaded or allocated. Fills in the
// options that are left to the machine.
Result<MemoryPlan> plan_memory(const ModelFile& file, const Device& device, EngineOptions& options,
                               ModelInfo* info);

}  // namespace vitrine
