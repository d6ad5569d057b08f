// q8_0 on cuda: units of 128 columns,
//   4 x [32 lanes][16 bytes, biased by 128]        one x per 32 columns
//   [8 rows][4 groups] {d of row, d of row + 8}
#pragma once

#include "kernels/cuda/unit.cuh"
#include "quant/q8_0.h"

namespace vitrine::cuda {

struct WeightQ8_0 {
  using Format = Q8_0;
  static constexpr bool kHalf = true, kMin = false;
  static constexpr int kCols = 128, kWords = 544, kGroup = 32, kPlanes = 1, kScratch = 0;
  static constexpr bool kLevels = true;
  static constexpr int kOffset = 128;
  static __device__ std::uint32_t pack_word(const Rows& m, std::int64_t row, std::int64_t col,
                                            int w) {
    if (w >= 512)
      return pair_of_halves(m, row + (w - 512) / 4, col + 32 * (w % 4), 32, Q8_0::kInfo.bytes, 0);
    int lane = w % 128 / 4, part = w % 4;
    std::uint32_t out = 0;
    for (int b = 0; b < 4; ++b) {
      int i = 2 * (part % 2) + b / 2;
      std::int64_t k = col + 32 * (w / 128) + 16 * (part / 2) + col_of(lane, i, b % 2);
      std::uint32_t q =
          k < m.cols ? m.byte(row + row_of(lane, i), k / 32 * Q8_0::kInfo.bytes + 2 + k % 32) : 0;
      out |= (q ^ 0x80) << (8 * b);
    }
    return out;
  }
  struct Chunk {
    uint4 w[2];
  };
  static __device__ Chunk load(const std::uint32_t* unit, int c, int lane) {
    auto* from = reinterpret_cast<const uint4*>(unit) + 64 * c + lane;
    return {from[0], from[32]};
  }
  static __device__ void operand(const Chunk& c, int j, std::uint32_t (&a)[1][4]) {
    const uint4& w = c.w[j / 2];
    std::uint32_t v[2] = {j % 2 ? w.z : w.x, j % 2 ? w.w : w.y};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      std::uint32_t level = __byte_perm(v[i / 2], kF16_1024, i % 2 ? 0x7372 : 0x7170);
      a[0][i] = add_half2(level, 0xE480E480);  // -1152
    }
  }
  static __device__ void bytes(const Chunk& c, int h, std::uint32_t (&a)[4]) {
    const uint4& w = c.w[h];
    a[0] = __byte_perm(w.x, w.y, 0x5140), a[1] = __byte_perm(w.x, w.y, 0x7362);
    a[2] = __byte_perm(w.z, w.w, 0x5140), a[3] = __byte_perm(w.z, w.w, 0x7362);
  }
  static __device__ OneScales<1> one_scales(const std::uint32_t* unit, int lane) {
    float2 d = unpack2<true>(unit[512 + lane]);
    return {{{d.x}, {d.y}}, {}};
  }
  static __device__ void prepare(const std::uint32_t*, float*, int) {}
  static __device__ float4 scale(const std::uint32_t* unit, const float*, int g, int lane) {
    float2 d = unpack2<true>(unit[512 + lane / 4 * 4 + g]);
    return {d.x, d.y, 0, 0};
  }
};

}  // namespace vitrine::cuda
