// q4_0 on cuda: units of 256 columns,
//   nibbles (detail/nibbles.cuh)
//   [8 rows][8 groups] {d of row, d of row + 8}
#pragma once

#include "kernels/cuda/formats/detail/nibbles.cuh"
#include "quant/q4_0.h"

namespace vitrine::cuda {

struct WeightQ4_0 {
  using Format = Q4_0;
  static constexpr bool kHalf = true, kMin = false, kLevels = true;
  static constexpr int kCols = 256, kWords = 576, kGroup = 32, kPlanes = 1, kScratch = 0;
  static constexpr int kOffset = 8;
  static __device__ std::uint32_t pack_word(const Rows& m, std::int64_t row, std::int64_t col,
                                            int w) {
    if (w >= 512)
      return pair_of_halves(m, row + (w - 512) / 8, col + 32 * (w % 8), 32, Q4_0::kInfo.bytes, 0);
    return nibbles(w, [&](int r, int c) -> std::uint32_t {
      std::int64_t k = col + c;
      if (k >= m.cols) return 0;
      return m.byte(row + r, k / 32 * Q4_0::kInfo.bytes + 2 + k % 16) >> (k % 32 / 16 * 4);
    });
  }
  struct Chunk {
    uint4 w;
  };
  static __device__ Chunk load(const std::uint32_t* unit, int c, int lane) {
    return {reinterpret_cast<const uint4*>(unit)[32 * c + lane]};
  }
  static __device__ void bytes(const Chunk& c, int h, std::uint32_t (&a)[4]) {
    nibble_bytes(c.w, h, a);
  }
  static __device__ void operand(const Chunk& c, int j, std::uint32_t (&a)[1][4]) {
    nibble_operand(c.w, j, a[0]);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      a[0][i] = add_half2(a[0][i], i % 2 ? 0xD480D480 : 0xE408E408);  // -72, -1032
  }
  static __device__ OneScales<2> one_scales(const std::uint32_t* unit, int lane) {
    uint2 d = reinterpret_cast<const uint2*>(unit + 512)[lane];
    float2 x = unpack2<true>(d.x), y = unpack2<true>(d.y);
    return {{{x.x, y.x}, {x.y, y.y}}, {}};
  }
  static __device__ void prepare(const std::uint32_t*, float*, int) {}
  static __device__ float4 scale(const std::uint32_t* unit, const float*, int g, int lane) {
    float2 d = unpack2<true>(unit[512 + lane / 4 * 8 + g]);
    return {d.x, d.y, 0, 0};
  }
};

}  // namespace vitrine::cuda
