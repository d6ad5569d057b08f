// All memory is known before serving: weights, KV pool, activations. Made by planning.h.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/cache_spec.h"
#include "tensor/dtype.h"

namespace vitrine {

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
  std::int64_t trace_bytes = 0;  // the log of the last steps, of the host's memory beside the total
  std::int64_t spec_bytes = 0;   // what guesses are made of, likewise
  std::int64_t kv_bytes_per_token = 0;  // of one position in all layers
  std::vector<CacheGroup> groups;
  std::vector<int> group_of;      // by layer
  int spare_pages = 0;            // of each group, beyond the pool: where padding rows write
  std::vector<MemoryPlan> draft;  // of the draft model; empty: none
  std::int64_t total() const {
    const std::int64_t own = packed_bytes + activation_bytes + kv_bytes;
    return draft.empty() ? own : own + draft.front().total();
  }
};

}  // namespace vitrine
