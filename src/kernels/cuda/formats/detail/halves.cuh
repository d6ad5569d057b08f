// Units of 16-bit weights: 64 columns, 4 x [32 lanes][8 weights], one x per 16 columns.
#pragma once

#include "kernels/cuda/unit.cuh"

namespace vitrine::cuda {

struct HalfUnits : NoScales {
  static constexpr int kCols = 64, kWords = 512, kPlanes = 1;
  static __device__ std::uint32_t pack_word(const Rows& m, std::int64_t row, std::int64_t col,
                                            int w) {
    int lane = w % 128 / 4, i = w % 4;
    std::uint32_t out = 0;
    for (int h = 0; h < 2; ++h) {
      std::int64_t k = col + 16 * (w / 128) + col_of(lane, i, h);
      if (k < m.cols) out |= m.half(row + row_of(lane, i), 2 * k) << (16 * h);
    }
    return out;
  }
  struct Chunk {
    uint4 w[4];
  };
  static __device__ Chunk load(const std::uint32_t* unit, int, int lane) {
    Chunk c;
#pragma unroll
    for (int j = 0; j < 4; ++j) c.w[j] = reinterpret_cast<const uint4*>(unit)[32 * j + lane];
    return c;
  }
  static __device__ void operand(const Chunk& c, int j, std::uint32_t (&a)[1][4]) {
    a[0][0] = c.w[j].x, a[0][1] = c.w[j].y, a[0][2] = c.w[j].z, a[0][3] = c.w[j].w;
  }
};

}  // namespace vitrine::cuda
