// Reading and writing the values of a head in the KV pages.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/launch.cuh"

namespace vitrine::cuda {

// Element of a page: K at (head, offset, d), V behind all of K.
__device__ inline std::int64_t element(const KvShape& s, std::int64_t page, int value,
                                       std::int64_t head, std::int64_t offset) {
  std::int64_t D = s.layout.k.width, half = s.layout.heads * s.page_size * D;
  return (2 * page + value) * half + (head * s.page_size + offset) * D;
}

__device__ inline float load_kv(const std::byte* data, DType type, std::int64_t i) {
  if (type == DType::kF32) return reinterpret_cast<const float*>(data)[i];
  if (type == DType::kF16) return __half2float(reinterpret_cast<const __half*>(data)[i]);
  return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(data)[i]);
}

__device__ inline void store_kv_value(std::byte* data, DType type, std::int64_t i, float x) {
  if (type == DType::kF32)
    reinterpret_cast<float*>(data)[i] = x;
  else if (type == DType::kF16)
    reinterpret_cast<__half*>(data)[i] = __float2half_rn(x);
  else
    reinterpret_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(x);
}

// One warp: copies a head of token t from global to shared memory, normed if there are norm
// weights, rotated if asked for and there is a table. Visible to the whole warp on return.
__device__ inline void turn_head(const RopeStore& r, float* x, const float* from, std::int64_t t,
                                 const float* norm, bool rotate, int D) {
  // A lane issues all its loads at once, up to 256 values of a head and 128 rotations; what wider
  // heads have beyond that follows in loops.
  constexpr int kValues = 8, kTurns = kValues / 2;
  int lane = threadIdx.x % 32;
  const auto* turns = r.table != nullptr && rotate
                          ? reinterpret_cast<const float2*>(r.table) + t * r.half
                          : nullptr;
  float value[kValues];
  float2 turn[kTurns];
#pragma unroll
  for (int j = 0; j < kValues; ++j)
    if (lane + 32 * j < D) value[j] = __ldcg(from + lane + 32 * j);
  if (turns != nullptr)
#pragma unroll
    for (int j = 0; j < kTurns; ++j)
      if (lane + 32 * j < r.half) turn[j] = __ldcg(turns + lane + 32 * j);
  float sum = 0;
  auto put = [&](int d, float v) {
    x[d] = v;
    sum += v * v;
  };
#pragma unroll
  for (int j = 0; j < kValues; ++j)
    if (lane + 32 * j < D) put(lane + 32 * j, value[j]);
  for (int d = lane + 32 * kValues; d < D; d += 32) put(d, __ldcg(from + d));
  if (norm != nullptr) {
    float scale = 1 / sqrtf(warp_sum(sum) / static_cast<float>(D) + r.eps);
    for (int d = lane; d < D; d += 32) x[d] = x[d] * scale * norm[d];
  }
  __syncwarp();
  // The two values of a pair are half of the rotated dims apart.
  auto rotate_pair = [&](int i, float2 by) {
    float a = x[i], b = x[i + r.half];
    x[i] = a * by.x - b * by.y;
    x[i + r.half] = b * by.x + a * by.y;
  };
  if (turns != nullptr) {
#pragma unroll
    for (int j = 0; j < kTurns; ++j)
      if (lane + 32 * j < r.half) rotate_pair(lane + 32 * j, turn[j]);
    for (std::int64_t i = lane + 32 * kTurns; i < r.half; i += 32)
      rotate_pair(static_cast<int>(i), turns[i]);
  }
  __syncwarp();
}

}  // namespace vitrine::cuda
