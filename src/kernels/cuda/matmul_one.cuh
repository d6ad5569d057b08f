// One row times a unit of levels with a scale per group.
//
// The tensor instruction has eight columns and one row needs one. So every group of a unit has a
// column of its own: the row's numbers stand in the column of their group, zeros in the others, and
// the sums of all groups come out side by side, without a stop between groups. A lane then has the
// sums of two rows of weights and of the groups whose scales it reads itself.
#pragma once

#include "kernels/cuda/matmul_formats.cuh"

namespace vitrine::cuda {

// Whether a format has this kernel.
template <typename F>
inline constexpr bool kHasOne = F::kOffset > 0;

// Sixteen zeros in shared memory; whoever brings the row there writes them.
__device__ inline uint4* zero_row() {
  __shared__ uint4 zeros;
  return &zeros;
}

__device__ inline void load_columns(std::uint32_t (&b)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(address)
               : "memory");
}

// The lane's view of the row: f16, [16 columns] as they are.
template <typename F>
struct OneRow {
  static constexpr int kGroups = F::kCols / F::kGroup / 4;  // of a lane: 2 or 4
  unsigned mine, zeros;  // addresses for load_columns in the unit: where the lane's column is, else
  const float* sums;     // of the row, by group

  __device__ OneRow(const std::byte* x, const float* row_sums, int lane)
      : mine(static_cast<unsigned>(__cvta_generic_to_shared(x)) + lane / 8 * 16),
        zeros(static_cast<unsigned>(__cvta_generic_to_shared(zero_row()))),
        sums(row_sums + kGroups * (lane % 4)) {}

  // acc[i]: of row lane / 4 + 8 i, over the lane's groups.
  __device__ void multiply(const std::uint32_t* unit, int u, float (&acc)[2], int lane) const {
    constexpr int kTiles = kGroups / 2, kChains = kTiles == 1 ? 2 : 1;
    float sum[2][4] = {};
    unsigned x = mine + u * (F::kCols * 2);
#pragma unroll
    for (int c = 0; c < F::kCols / 64; ++c) {
      typename F::Chunk chunk = F::load(unit, c, lane);
#pragma unroll
      for (int h = 0; h < 2; ++h) {  // 32 columns
        int p = 2 * c + h;
        // Groups of 32: column p. Of 16: two columns, of the groups 4 (p / 2) + 2 (p % 2) and the
        // next, which the lanes with lane % 4 = p / 2 have as their (p % 2)-th pair.
        bool here = kTiles == 1 ? lane % 8 == p : lane % 8 - lane / 16 == 2 * (p / 2);
        std::uint32_t b[4];
        load_columns(b, here ? x + p * 64 : zeros);
#pragma unroll
        for (int s = 0; s < 2; ++s) {
          std::uint32_t a[4];
          F::levels(chunk, 2 * h + s, a);
          mma<true>(sum[kTiles == 1 ? s % kChains : p % 2], a, b[2 * s], b[2 * s + 1]);
        }
      }
    }
    OneScales<kGroups> scales = F::one_scales(unit, lane);
    const float* total = sums + u * (F::kCols / F::kGroup);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      float t = total[g];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float dot = kTiles == 1 ? sum[0][2 * i + g] + sum[1][2 * i + g] : sum[g / 2][2 * i + g % 2];
        acc[i] =
            fmaf(scales.scale[i][g], fmaf(i == 0 ? -F::kOffset : -F::kOffset8, t, dot), acc[i]);
        if constexpr (F::kMin) acc[i] = fmaf(-scales.min[i][g], t, acc[i]);
      }
    }
  }
};

}  // namespace vitrine::cuda
