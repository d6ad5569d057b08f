// q6_k on cuda: units of 256 columns,
//   nibbles (detail/nibbles.cuh)
//   2 x [32 lanes][4 words of 2-bit fields]
//   [32 lanes][2 rows][4] int8 scales of every fourth group from l % 4
//   [8 rows] {d of row, d of row + 8}
#pragma once

#include "kernels/cuda/formats/detail/nibbles.cuh"
#include "quant/q6_k.h"

namespace vitrine::cuda {

struct WeightQ6_K {
  using Format = Q6_K;
  static constexpr bool kHalf = true, kMin = false, kLevels = true;
  static constexpr int kCols = 256, kWords = 840, kGroup = 16, kPlanes = 1, kScratch = 256;
  static constexpr int kOffset = 32;
  static __device__ std::uint32_t pack_word(const Rows& m, std::int64_t row, std::int64_t col,
                                            int w) {
    std::int64_t block = col / 256 * Q6_K::kInfo.bytes;
    if (w >= 832)
      return m.half(row + w - 832, block + 208) | m.half(row + w - 832 + 8, block + 208) << 16;
    if (w >= 768) {
      int lane = (w - 768) / 2;
      std::uint32_t out = 0;
      for (int g = 0; g < 4; ++g)
        out |= m.byte(row + lane / 4 + 8 * (w % 2), block + 192 + 4 * g + lane % 4) << (8 * g);
      return out;
    }
    if (w >= 512) return high_bits(m, row, block, w - 512);
    return nibbles(w, [&](int r, int k) -> std::uint32_t {
      return m.byte(row + r, block + k / 128 * 64 + k % 64) >> (k % 128 / 64 * 4);
    });
  }
  // Of 32 columns: row r + 8 i of the j-th 16 is the field 2j + i of the bytes.
  static __device__ std::uint32_t high_bits(const Rows& m, std::int64_t row, std::int64_t block,
                                            int w) {
    int lane = w % 128 / 4, part = w / 128 * 4 + w % 4;
    std::uint32_t out = 0;
    for (int f = 0; f < 16; ++f) {
      int k = part * 32 + f % 4 / 2 * 16 + byte_col(lane, f / 4);
      std::uint32_t high = m.byte(row + row_of(lane, f % 2), block + 128 + k / 128 * 32 + k % 32);
      out |= (high >> (k % 128 / 32 * 2) & 3) << (2 * f);
    }
    return out;
  }
  struct Chunk {
    uint4 w;
    uint2 high;
  };
  static __device__ Chunk load(const std::uint32_t* unit, int c, int lane) {
    return {reinterpret_cast<const uint4*>(unit)[32 * c + lane],
            reinterpret_cast<const uint2*>(unit + 512)[c / 2 * 64 + lane * 2 + c % 2]};
  }
  static __device__ void bytes(const Chunk& c, int h, std::uint32_t (&a)[4]) {
    nibble_bytes(c.w, h, a);
    std::uint32_t high = h ? c.high.y : c.high.x;
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] |= field(high, 4 - 2 * i, 0x30303030);
  }
  static __device__ void operand(const Chunk& c, int j, std::uint32_t (&a)[1][4]) {
    nibble_operand(c.w, j, a[0]);
    std::uint32_t high = j < 2 ? c.high.x : c.high.y;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      a[0][i] |= field(high, 4 + i % 2 * 4 - 8 * (i / 2) - 2 * (2 * (j % 2) + i % 2),
                       i % 2 ? 0x03000300 : 0x00300030);
      a[0][i] = add_half2(a[0][i], i % 2 ? 0xD600D600 : 0xE420E420);  // -96, -1056
    }
  }
  static __device__ OneScales<4> one_scales(const std::uint32_t* unit, int lane) {
    uint2 w = reinterpret_cast<const uint2*>(unit + 768)[lane];
    float2 d = unpack2<true>(unit[832 + lane / 4]);
    OneScales<4> s;
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      s.scale[0][g] = d.x * static_cast<float>(static_cast<signed char>(w.x >> (8 * g)));
      s.scale[1][g] = d.y * static_cast<float>(static_cast<signed char>(w.y >> (8 * g)));
    }
    return s;
  }
  // [16 groups][8 rows] {scale of r, of r + 8}
  static __device__ void prepare(const std::uint32_t* unit, float* scratch, int lane) {
    OneScales<4> s = one_scales(unit, lane);
    auto* to = reinterpret_cast<float2*>(scratch) + lane / 4;
#pragma unroll
    for (int g = 0; g < 4; ++g) to[8 * (4 * g + lane % 4)] = {s.scale[0][g], s.scale[1][g]};
  }
  static __device__ float4 scale(const std::uint32_t*, const float* scratch, int g, int lane) {
    float2 s = reinterpret_cast<const float2*>(scratch)[8 * g + lane / 4];
    return {s.x, s.y, 0, 0};
  }
};

}  // namespace vitrine::cuda
