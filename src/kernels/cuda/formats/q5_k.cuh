// q5_k on cuda: units of 256 columns, nibbles, [32 lanes][4 words of fifth bits], scales (detail/).
#pragma once

#include "kernels/cuda/formats/detail/k_scales.cuh"
#include "kernels/cuda/formats/detail/nibbles.cuh"
#include "quant/q5_k.h"

namespace vitrine::cuda {

struct WeightQ5_K {
  using Format = Q5_K;
  static constexpr bool kHalf = true, kMin = true, kLevels = true;
  static constexpr int kCols = 256, kWords = 704, kGroup = 32, kPlanes = 1, kScratch = 256;
  static constexpr int kOffset = 0;
  static __device__ std::uint32_t pack_word(const Rows& m, std::int64_t row, std::int64_t col,
                                            int w) {
    std::int64_t block = col / 256 * Q5_K::kInfo.bytes;
    if (w >= 640) return k_scale_word(m, row, block, w - 640);
    if (w >= 512) return fifth_bits(m, row, block, w - 512);
    return nibbles(w, [&](int r, int k) -> std::uint32_t {
      return m.byte(row + r, block + 48 + k / 64 * 32 + k % 32) >> (k % 64 / 32 * 4);
    });
  }
  // Of 64 columns: row r + 8 i of the j-th 16 is bit 2j + i of the bytes.
  static __device__ std::uint32_t fifth_bits(const Rows& m, std::int64_t row, std::int64_t block,
                                             int w) {
    int lane = w / 4;
    std::uint32_t out = 0;
    for (int b = 0; b < 32; ++b) {
      int k = w % 4 * 64 + b % 8 / 2 * 16 + byte_col(lane, b / 8);
      out |= (m.byte(row + row_of(lane, b % 2), block + 16 + k % 32) >> (k / 32) & 1) << b;
    }
    return out;
  }
  struct Chunk {
    uint4 w;
    std::uint32_t high;
  };
  static __device__ Chunk load(const std::uint32_t* unit, int c, int lane) {
    return {reinterpret_cast<const uint4*>(unit)[32 * c + lane], unit[512 + 4 * lane + c]};
  }
  static __device__ void bytes(const Chunk& c, int h, std::uint32_t (&a)[4]) {
    nibble_bytes(c.w, h, a);
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] |= field(c.high, 4 - (4 * h + i), 0x10101010);
  }
  static __device__ void operand(const Chunk& c, int j, std::uint32_t (&a)[1][4]) {
    nibble_operand(c.w, j, a[0]);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      a[0][i] |= field(c.high, 4 + i % 2 * 4 - 8 * (i / 2) - (2 * j + i % 2),
                       i % 2 ? 0x01000100 : 0x00100010);
  }
  static __device__ OneScales<2> one_scales(const std::uint32_t* unit, int lane) {
    return k_scales(unit + 640, lane);
  }
  static __device__ void prepare(const std::uint32_t* unit, float* scratch, int lane) {
    prepare_k_scales(unit + 640, scratch, lane);
  }
  static __device__ float4 scale(const std::uint32_t*, const float* scratch, int g, int lane) {
    return reinterpret_cast<const float4*>(scratch)[8 * g + lane / 4];
  }
};

}  // namespace vitrine::cuda
