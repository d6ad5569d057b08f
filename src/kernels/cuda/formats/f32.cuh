// f32 on cuda: units of 64 columns, 8 x [32 lanes][4 f32]; an operand is the sum of three bf16.
#pragma once

#include "kernels/cuda/unit.cuh"
#include "quant/f32.h"

namespace vitrine::cuda {

struct WeightF32 : NoScales {
  using Format = F32;
  static constexpr bool kHalf = false;
  static constexpr int kCols = 64, kWords = 1024, kPlanes = 3;
  static __device__ std::uint32_t pack_word(const Rows& m, std::int64_t row, std::int64_t col,
                                            int w) {
    int lane = w % 128 / 4, e = w / 128 % 2 * 4 + w % 4;
    std::int64_t k = col + 16 * (w / 256) + col_of(lane, e / 2, e % 2);
    if (k >= m.cols) return 0;
    std::int64_t r = row + row_of(lane, e / 2);
    return m.half(r, 4 * k) | m.half(r, 4 * k + 2) << 16;
  }
  struct Chunk {
    float4 w[8];
  };
  static __device__ Chunk load(const std::uint32_t* unit, int, int lane) {
    Chunk c;
#pragma unroll
    for (int j = 0; j < 8; ++j) c.w[j] = reinterpret_cast<const float4*>(unit)[32 * j + lane];
    return c;
  }
  static __device__ void operand(const Chunk& c, int j, std::uint32_t (&a)[3][4]) {
    const float4 &u = c.w[2 * j], &v = c.w[2 * j + 1];
    float2 w[4] = {{u.x, u.y}, {u.z, u.w}, {v.x, v.y}, {v.z, v.w}};
#pragma unroll
    for (int p = 0; p < 3; ++p)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        a[p][i] = pack2<false>(w[i].x, w[i].y);
        float2 taken = unpack2<false>(a[p][i]);
        w[i].x -= taken.x, w[i].y -= taken.y;
      }
  }
};

}  // namespace vitrine::cuda
