// Norms: one block per row, the row in registers, one pass over memory. A thread sums its elements
// in ascending order, then shuffles sum over threads: the order depends on the row's width alone.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"

namespace vitrine::cuda {
namespace {

constexpr int kMaxThreads = 1024, kInRegisters = 8;  // elements a thread may hold

// Threads of a block for rows of E elements.
int threads_for(std::int64_t E) {
  std::int64_t per = E <= 1024 ? 1 : 4;
  std::int64_t n = (E + per - 1) / per;
  return static_cast<int>(n > kMaxThreads ? kMaxThreads : (n + 31) / 32 * 32);
}

// f(i, slot) for the thread's elements. Slots from kInRegisters on are not kept in registers: the
// end of such a wide row is read again.
template <typename F>
__device__ void for_each(int E, F&& f) {
#pragma unroll
  for (int j = 0; j < kInRegisters; ++j) {
    int i = threadIdx.x + j * blockDim.x;
    if (i < E) f(i, j);
  }
  for (int i = threadIdx.x + kInRegisters * blockDim.x; i < E; i += blockDim.x) f(i, kInRegisters);
}

// kAdd: x = x + delta first, written back. `rows`: which rows of x to norm; null: all.
template <bool kAdd>
__global__ void __launch_bounds__(kMaxThreads)
    rms_norm_kernel(float* out, float* x, const std::int32_t* rows, const float* delta,
                    const float* w, int E, float eps) {
  __shared__ float scratch[33];
  pdl_trigger();
  std::int64_t to = std::int64_t{blockIdx.x} * E, from = to;
  if (rows) from = std::int64_t{rows[blockIdx.x]} * E;
  float kept[kInRegisters] = {}, weight[kInRegisters] = {};
  for_each(E, [&](int i, int j) {
    if (j < kInRegisters) weight[j] = w[i];
  });
  pdl_wait();
  float sum = 0;
  for_each(E, [&](int i, int j) {
    float v = x[from + i];
    if constexpr (kAdd) x[from + i] = v = v + delta[from + i];
    if (j < kInRegisters) kept[j] = v;
    sum += v * v;
  });
  float scale = 1 / sqrtf(block_sum(sum, scratch) / static_cast<float>(E) + eps);
  for_each(E, [&](int i, int j) {
    bool here = j < kInRegisters;
    out[to + i] = (here ? kept[j] : x[from + i]) * scale * (here ? weight[j] : w[i]);
  });
}

__global__ void __launch_bounds__(kMaxThreads)
    layer_norm_kernel(float* out, const float* x, const float* w, const float* b, int E,
                      float eps) {
  __shared__ float scratch[33];
  pdl_wait();
  pdl_trigger();
  std::int64_t row = std::int64_t{blockIdx.x} * E;
  float kept[kInRegisters] = {};
  float sum = 0, squares = 0;
  auto value = [&](int i, int j) { return j < kInRegisters ? kept[j] : x[row + i]; };
  for_each(E, [&](int i, int j) {
    float v = x[row + i];
    if (j < kInRegisters) kept[j] = v;
    sum += v;
  });
  float mean = block_sum(sum, scratch) / static_cast<float>(E);
  for_each(E, [&](int i, int j) {
    float v = value(i, j) - mean;
    squares += v * v;
  });
  float scale = 1 / sqrtf(block_sum(squares, scratch) / static_cast<float>(E) + eps);
  for_each(E, [&](int i, int j) {
    out[row + i] = (value(i, j) - mean) * scale * w[i] + (b != nullptr ? b[i] : 0);
  });
}

}  // namespace

void rms_norm(const Context& c, float* out, const float* x, const std::int32_t* rows,
              const float* w, std::int64_t T, std::int64_t E, float eps) {
  if (T == 0) return;
  launch(c, rms_norm_kernel<false>, blocks_for(c, T, 1), threads_for(E), 0, out,
         const_cast<float*>(x), rows, nullptr, w, E, eps);
}

void add_rms_norm(const Context& c, float* out, float* residual, const float* delta, const float* w,
                  std::int64_t T, std::int64_t E, float eps) {
  if (T == 0) return;
  launch(c, rms_norm_kernel<true>, blocks_for(c, T, 1), threads_for(E), 0, out, residual, nullptr,
         delta, w, E, eps);
}

void layer_norm(const Context& c, float* out, const float* x, const float* w, const float* b,
                std::int64_t T, std::int64_t E, float eps) {
  if (T == 0) return;
  launch(c, layer_norm_kernel, blocks_for(c, T, 1), threads_for(E), 0, out, x, w, b, E, eps);
}

}  // namespace vitrine::cuda
