// A warp's product with one unit.
#pragma once

#include "kernels/cuda/unit.cuh"

namespace vitrine::cuda {

// acc += scale * sum - minimum * total, of a group.
template <typename F, typename X>
__device__ inline void add_group(float (&acc)[4], const float (&sum)[4], const float4& scale,
                                 const float2& total) {
#pragma unroll
  for (int i = 0; i < 4; i += X::kPaired || X::kOne ? 2 : 1) {
    float unit = i < 2 ? scale.x : scale.y, min = i < 2 ? scale.z : scale.w;
    if constexpr (F::kMin) acc[i] = fmaf(-min, i % 2 ? total.y : total.x, acc[i]);
    acc[i] = fmaf(unit, X::kPaired ? sum[i] + sum[i + 1] : sum[i], acc[i]);
  }
}

// acc[rt][nt] += unit rt (16 rows) * activations nt (8 tokens). X gives operand B of 16 columns,
// x(j, nt), and, where the format has minimums, x.sum(g, nt): the sums of the lane's two tokens
// over group g. X::kPaired: the lane's two columns belong to one token and are added up in
// acc[..][0] and acc[..][2] where there are groups. X::kOne: only the first of the lane's columns
// counts. The units' words must be visible to the whole warp.
template <typename F, int RT, int NT, typename X>
__device__ inline void multiply_unit(const std::uint32_t* const (&unit)[RT], float* scratch,
                                     const X& x, float (&acc)[RT][NT][4], int lane) {
  if constexpr (F::kScratch > 0) {
#pragma unroll
    for (int rt = 0; rt < RT; ++rt) F::prepare(unit[rt], scratch + rt * F::kScratch, lane);
    __syncwarp();
  }
  constexpr int kChunks = F::kCols / 64, kUnroll = NT == 1 ? 2 : 1, kGroups = 64 / F::kGroup;
#pragma unroll kUnroll
  for (int c = 0; c < kChunks; ++c) {
    typename F::Chunk chunk[RT];
#pragma unroll
    for (int rt = 0; rt < RT; ++rt) chunk[rt] = F::load(unit[rt], c, lane);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      constexpr int kSteps = F::kGroup / 16;
      int group = c * kGroups + g;
      std::uint32_t a[RT][kSteps][F::kPlanes][4];
      float4 scale[RT];
#pragma unroll
      for (int rt = 0; rt < RT; ++rt) {
#pragma unroll
        for (int s = 0; s < kSteps; ++s) F::operand(chunk[rt], g * kSteps + s, a[rt][s]);
        if constexpr (kGroups > 1)
          scale[rt] = F::scale(unit[rt], scratch + rt * F::kScratch, group, lane);
      }
#pragma unroll
      for (int nt = 0; nt < NT; ++nt) {
        float sum[RT][4] = {};
#pragma unroll
        for (int s = 0; s < kSteps; ++s) {
          uint2 b = x(c * 4 + g * kSteps + s, nt);
#pragma unroll
          for (int rt = 0; rt < RT; ++rt)
#pragma unroll
            for (int p = 0; p < F::kPlanes; ++p)
              mma<F::kHalf>(kGroups > 1 ? sum[rt] : acc[rt][nt], a[rt][s][p], b.x, b.y);
        }
        if constexpr (kGroups > 1) {
          float2 total{};
          if constexpr (F::kMin) total = x.sum(group, nt);
#pragma unroll
          for (int rt = 0; rt < RT; ++rt) add_group<F, X>(acc[rt][nt], sum[rt], scale[rt], total);
        }
      }
    }
  }
}

}  // namespace vitrine::cuda
