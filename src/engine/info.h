// What an engine was made of, as plain values.
#pragma once

#include <cstdint>
#include <string>

namespace vitrine {

struct EngineInfo {
  // The model.
  std::string arch;
  int layers = 0, dim = 0, heads = 0, vocab = 0;
  int model_context = 0;  // positions the model was made for
  // Its matrices: all but the head, and the head. Bytes: what one pass over them reads.
  std::int64_t matmul_weights = 0, matmul_bytes = 0;
  std::int64_t head_weights = 0, head_bytes = 0;
  // The backend.
  std::string backend;              // "cpu"
  std::string backend_description;  // with what was found: "cpu (avx512, 2 threads)"
  bool queues_steps = false;        // a step is queued while the one before it runs
  // FLOPs that it does in the time of reading a byte: an estimate, to divide the time of steps by.
  double flops_per_byte = 0;
  bool exact = true;  // a row's bits do not depend on the rest of the batch
};

}  // namespace vitrine
