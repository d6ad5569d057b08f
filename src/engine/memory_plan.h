// All memory is known before serving: weights, KV pool, activations. Computed by loading the model
// onto a device that only counts, so the plan and the load cannot disagree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/model_file.h"
#include "kernels/backend.h"
#include "kv/cache_spec.h"
#include "models/model.h"

namespace vitrine {

// How sequences are put together: re-decided every step, or a full batch run to its slowest member.
enum class Policy { kContinuous, kStatic };
const char* policy_name(Policy policy);

struct EngineOptions {
  std::string backend = "auto";
  int device = 0;         // which of the backend's devices
  int threads = 0;        // 0: all
  std::string isa;        // cpu: a lower instruction set than the best, for comparison
  int context = 0;        // 0: the model's, at most kDefaultContext
  int sequences = 1;      // that run at the same time; 0: as memory allows
  int kv_tokens = 0;      // positions of the KV pool; 0: sequences x context, or as memory allows
  int step_tokens = 512;  // rows of the largest step
  int page_size = 32;     // positions
  DType kv_dtype = DType::kF16;
  // Steps between running and committing; 0 is the specification. -1: 1 where steps are queued, so
  // that the device has the next one while the host looks at the last.
  int commit_delay = -1;
  bool deterministic = false;  // cuda: bits do not depend on the batch; others always do so
  bool synchronous = false;    // cuda: every op is waited for, to find one that fails
  int max_queue = 512;         // requests that may wait
  Policy policy = Policy::kContinuous;
  int static_wait_ms = 1000;  // Policy::kStatic: how long a batch that is not full waits
  int mixed_step_ms = 250;    // about how long prefill may take beside decoding; 0: no limit
  bool prefix_cache = true;
  bool poison_pages = false;  // fill pages with NaN when they are taken (tests)
  std::function<void(std::int64_t bytes)> progress;
};
inline constexpr int kDefaultContext = 4096;

struct CacheGroup {
  CacheSpec spec;
  std::vector<int> layers = {};
  int pages = 0;                // in the pool
  int pages_per_sequence = 0;   // the most that one sequence can hold
  std::int64_t page_bytes = 0;  // of all its layers together
};

struct MemoryPlan {
  int context = 0, sequences = 0, page_size = 0;
  DType kv_dtype = DType::kF16;
  std::int64_t file_bytes = 0;    // tensors, mapped
  std::int64_t packed_bytes = 0;  // the backend's own copies
  std::int64_t activation_bytes = 0;
  std::int64_t kv_bytes = 0;
  std::int64_t kv_bytes_per_token = 0;  // of one position in all layers
  std::vector<CacheGroup> groups;
  std::vector<int> group_of;  // by layer
  int spare_pages = 0;        // of each group, beyond the pool: where padding rows write
  std::int64_t total() const { return packed_bytes + activation_bytes + kv_bytes; }
};

BackendOptions backend_options(const EngineOptions& options);
// Ranges of the numbers; an error names the option.
Status check_options(const EngineOptions& options);
// An error when the plan is larger than what the device has free: the host's memory comes page by
// page, and running out of it later would end the process.
Status check_memory(const MemoryPlan& plan, const Device& device);
// The context that the options and the model give; an error names both when they disagree.
Result<int> choose_context(const EngineOptions& options, int model_context);
// Fills in what the options leave to the machine (sequences, kv_tokens): half of `free`, the bytes
// that weights and activations leave, goes to the pool.
void choose_sizes(EngineOptions& options, std::int64_t free, std::int64_t bytes_per_token,
                  int context);
// Groups and KV sizes for a loaded (or only counted) model.
MemoryPlan plan_cache(const Model& model, const Device& device, const EngineOptions& options,
                      int context);
// For a model that will be loaded onto `device`; nothing is loaded or allocated. Fills in the
// options that are left to the machine.
Result<MemoryPlan> plan_memory(const ModelFile& file, const Device& device, EngineOptions& options,
                               ModelInfo* info);

}  // namespace vitrine
