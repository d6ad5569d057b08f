// q4_k on cuda: units of 256 columns, nibbles and then scales (detail/).
#pragma once

#include "kernels/cuda/formats/detail/k_scales.cuh"
#include "kernels/cuda/formats/detail/nibbles.cuh"
#include "quant/q4_k.h"

namespace vitrine::cuda {

struct WeightQ4_K {
  using Format = Q4_K;
  static constexpr bool kHalf = true, kMin = true, kLevels = true;
  static constexpr int kCols = 256, kWords = 576, kGroup = 32, kPlanes = 1, kScratch = 256;
  static constexpr int kOffset = 0;
  static __device__ std::uint32_t pack_word(const Rows& m, std::int64_t row, std::int64_t col,
                                            int w) {
    std::int64_t block = col / 256 * Q4_K::kInfo.bytes;
    if (w >= 512) return k_scale_word(m, row, block, w - 512);
    return nibbles(w, [&](int r, int k) -> std::uint32_t {
      return m.byte(row + r, block + 16 + k / 64 * 32 + k % 32) >> (k % 64 / 32 * 4);
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
  }
  static __device__ OneScales<2> one_scales(const std::uint32_t* unit, int lane) {
    return k_scales(unit + 512, lane);
  }
  static __device__ void prepare(const std::uint32_t* unit, float* scratch, int lane) {
    prepare_k_scales(unit + 512, scratch, lane);
  }
  static __device__ float4 scale(const std::uint32_t*, const float* scratch, int g, int lane) {
    return reinterpret_cast<const float4*>(scratch)[8 * g + lane / 4];
  }
};

}  // namespace vitrine::cuda
