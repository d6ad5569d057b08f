// RoPE: a table of cosines and sines for the step, and the rotation of heads by it.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"

namespace vitrine::cuda {
namespace {

constexpr int kThreads = 128;

__global__ void rope_table_kernel(float2* table, const std::int32_t* positions,
                                  const float* inv_freq, std::int64_t n, std::int64_t half,
                                  float scale) {
  pdl_wait();
  pdl_trigger();
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float angle = static_cast<float>(positions[i / half]) * inv_freq[i % half];
  table[i] = {cosf(angle) * scale, sinf(angle) * scale};
}

__global__ void rope_kernel(float* x, const float2* table, std::int64_t n, std::int64_t H,
                            std::int64_t D, std::int64_t half) {
  pdl_wait();
  pdl_trigger();
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  std::int64_t head = i / half, pair = i % half;
  float2 turn = table[head / H * half + pair];
  float* at = x + head * D + pair;
  float a = at[0], b = at[half];
  at[0] = a * turn.x - b * turn.y;
  at[half] = b * turn.x + a * turn.y;
}

}  // namespace

void rope_table(const Context& c, float* table, const std::int32_t* positions,
                const float* inv_freq, std::int64_t T, std::int64_t half, float scale) {
  launch(c, rope_table_kernel, blocks_for(c, T * half, kThreads), kThreads, 0,
         reinterpret_cast<float2*>(table), positions, inv_freq, T * half, half, scale);
}

void rope(const Context& c, float* x, const float* table, std::int64_t T, std::int64_t H,
          std::int64_t D, std::int64_t half) {
  launch(c, rope_kernel, blocks_for(c, T * H * half, kThreads), kThreads, 0, x,
         reinterpret_cast<const float2*>(table), T * H * half, H, D, half);
}

}  // namespace vitrine::cuda
