// Nibbles of 256 columns: 4 x [32 lanes][4 words of 8 nibbles], one x per 64 columns.
#pragma once

#include "kernels/cuda/unit.cuh"

namespace vitrine::cuda {

// A word of nibbles: element h of register i is nibble 4h + i. `level(row, k)` is the weight's.
template <typename Level>
__device__ inline std::uint32_t nibbles(int w, Level level) {
  int lane = w % 128 / 4, j = w / 128 * 4 + w % 4;
  std::uint32_t out = 0;
  for (int p = 0; p < 8; ++p)
    out |= (level(row_of(lane, p % 4), 16 * j + col_of(lane, p % 4, p / 4)) & 15) << (4 * p);
  return out;
}

// Nibbles of the j-th 16 columns of a chunk: 1024 + level for row r (a[0] and a[2]), 64 + level for
// row r + 8, where the level stands four bits higher.
__device__ inline void nibble_operand(const uint4& chunk, int j, std::uint32_t (&a)[4]) {
  std::uint32_t v = j == 0 ? chunk.x : j == 1 ? chunk.y : j == 2 ? chunk.z : chunk.w, w = v >> 8;
  a[0] = and_or<0x000F000F>(v, kF16_1024);
  a[1] = and_or<0x00F000F0>(v, kF16_64);
  a[2] = and_or<0x000F000F>(w, kF16_1024);
  a[3] = and_or<0x00F000F0>(w, kF16_64);
}

// Of 32 columns, which two words have.
__device__ inline void nibble_bytes(const uint4& chunk, int h, std::uint32_t (&a)[4]) {
  std::uint32_t v = h ? chunk.z : chunk.x, w = h ? chunk.w : chunk.y;
  a[0] = v & 0x0F0F0F0F, a[1] = v >> 4 & 0x0F0F0F0F;
  a[2] = w & 0x0F0F0F0F, a[3] = w >> 4 & 0x0F0F0F0F;
}

}  // namespace vitrine::cuda
