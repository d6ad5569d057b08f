// The scales of eight groups of 32 columns, each with a minimum (quant/detail/k_scales.h): [32
// lanes] 8 bytes. Lane (r, q) has those of rows r and r + 8, groups 2q and 2q+1, a row a word:
// scale, minimum, scale, minimum in six bits each; in the upper bytes the q-th of {d, dmin of r, d,
// dmin of r + 8}.
#pragma once

#include "kernels/cuda/unit.cuh"
#include "quant/detail/k_scales.h"

namespace vitrine::cuda {

// Word w of them, from the blocks that begin at byte `block` of the rows.
__device__ inline std::uint32_t k_scale_word(const Rows& m, std::int64_t row, std::int64_t block,
                                             int w) {
  int lane = w / 2, q = lane % 4, r = lane / 4;
  std::int64_t from = row + r + 8 * (w % 2);
  std::uint8_t packed[12];
  for (int i = 0; i < 12; ++i) packed[i] = static_cast<std::uint8_t>(m.byte(from, block + 4 + i));
  std::uint32_t out = 0;
  for (int g = 0; g < 2; ++g) {
    int scale = 0, min = 0;
    detail::unpack_k_scale(packed, 2 * q + g, scale, min);
    out |= static_cast<std::uint32_t>(scale | min << 6) << (12 * g);
  }
  return out | m.byte(row + r + 8 * (q / 2), block + 2 * (q % 2) + w % 2) << 24;
}

// The lane's share of the scales and minimums.
__device__ inline OneScales<2> k_scales(const std::uint32_t* words, int lane) {
  uint2 w = reinterpret_cast<const uint2*>(words)[lane];
  float mine =
      __half2float(__ushort_as_half(static_cast<unsigned short>(w.x >> 24 | (w.y >> 24) << 8)));
  float top[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) top[i] = __shfl_sync(0xffffffff, mine, i, 4);
  // top * level, exactly: the level as the last bits of 2^23, which the sum takes back.
  auto times = [&](int i, std::uint32_t word, int shift) {
    float level = __uint_as_float(and_or<63>(word >> shift, 0x4B000000));
    return fmaf(level, top[i], top[i] * -8388608.0f);
  };
  OneScales<2> s;
#pragma unroll
  for (int g = 0; g < 2; ++g) {
    s.scale[0][g] = times(0, w.x, 12 * g), s.scale[1][g] = times(2, w.y, 12 * g);
    s.min[0][g] = times(1, w.x, 12 * g + 6), s.min[1][g] = times(3, w.y, 12 * g + 6);
  }
  return s;
}

// Each lane decodes a quarter of its two rows' into `scratch`
// [8 groups][8 rows] {scale, scale, minimum, minimum}. The minimum takes back the 1024 and 64 of
// the levels as well.
__device__ inline void prepare_k_scales(const std::uint32_t* words, float* scratch, int lane) {
  OneScales<2> s = k_scales(words, lane);
  auto* to = reinterpret_cast<float4*>(scratch) + lane / 4;
#pragma unroll
  for (int g = 0; g < 2; ++g)
    to[8 * (2 * (lane % 4) + g)] = {s.scale[0][g], s.scale[1][g],
                                    fmaf(1024, s.scale[0][g], s.min[0][g]),
                                    fmaf(64, s.scale[1][g], s.min[1][g])};
}

}  // namespace vitrine::cuda
