// What every launch needs to know. One per backend; its thread is the device's (device.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace vitrine::cuda {

// An op's output, (T,K).
struct OutputRows {
  const float* x = nullptr;
  std::int64_t T = 0, K = 0;
};

struct Context {
  int device = 0;                // CUDA's number
  int capability = 0;            // 80, 90...
  int sms = 0;                   // multiprocessors
  int shared_bytes = 160 << 10;  // of shared memory that a block may have
  cudaStream_t stream = nullptr;
  // One kernel and one order of summation for every number of rows.
  bool deterministic = false;
  // Launches may begin before the one before them has ended (programmatic dependent launch): every
  // kernel calls pdl_wait() before it touches what another kernel reads or writes. Before that it
  // may read weights, what the host copied over, and pages of earlier steps: a step begins with
  // `embed`, which lets nothing start until all before it has ended.
  bool pdl = false;
  // Scratch of whichever op runs; nothing in it survives the op. Fixed address.
  std::byte* workspace = nullptr;
  std::int64_t workspace_bytes = 0;
  // kOperandBytes (matmul.h) for an op's output as operands of a product that comes right after it
  // (operands.cuh); null: ops leave none. Whose they are: what the op before left, and what the op
  // that runs does.
  std::byte* operands = nullptr;
  OutputRows given, left;
  // The last product took operands of bf16: the next one is likely to.
  bool bf16_operands = false;
  // Tokens that the device drew, which ids below zero stand for: -1 - slot is last[slot].
  const std::int32_t* last = nullptr;
  // kTickets (matmul.h) counters that are zero between kernels.
  unsigned* tickets = nullptr;

  // What runs, for the message when it fails.
  const char* op = "";
  std::int64_t shape[4] = {0, 0, 0, 0};
  std::uint64_t step = 0;
};

// An op begins. It may take what the one before it left; nobody after it may. Either every op is
// announced so or none is: then none takes anything.
inline void begin_op(Context& c) { c.given = std::exchange(c.left, {}); }
// Something that is no op may have changed the output.
inline void forget_operands(Context& c) { c.given = c.left = {}; }

// Makes `device` that of the calling thread, of which CUDA keeps one per thread. Cheap when it is so
// already; nothing else in the program may change it.
cudaError_t set_device(int device);
// The same for the context's device. Called by every public function of the backend: a model is
// loaded by another thread than the one that runs it.
void enter(const Context& c);

// Ends the process with the error, the op, its shape and the step. A device that failed has lost
// its memory: there is nothing to go on with.
[[noreturn]] void fail(const Context& c, cudaError_t error, const char* what);

inline void check(const Context& c, cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(c, error, what);
}

// Blocks of `per` that cover n; the process ends where a launch could not have as many.
unsigned blocks_for(const Context& c, std::int64_t n, std::int64_t per);

}  // namespace vitrine::cuda
