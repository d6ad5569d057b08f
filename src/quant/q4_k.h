// q4_k: 256 weights in 8 groups of 32, 144 bytes, 4.5 bits a weight.
//   byte 0..1    d     fp16      w = d * scale[j] * q - dmin * min[j]      j = i / 32
//   byte 2..3    dmin  fp16
//   byte 4..15   6-bit scale[8], min[8] (detail/k_scales.h)
//   byte 16..143 q: 32 bytes for every 64 weights, low nibbles the first 32, high nibbles the next
#pragma once

#include "quant/detail/k_scales.h"
#include "quant/format.h"
#include "quant/half.h"

namespace vitrine {

struct Q4_K {
  static constexpr FormatInfo kInfo = ggml_info("q4_k", true);
  struct Block {
    std::uint16_t d, dmin;
    std::uint8_t scales[12];
    std::uint8_t q[128];
  };
  static constexpr void decode(const Block& b, float* out) {
    float d = fp16_to_float(b.d), dmin = fp16_to_float(b.dmin);
    for (int j = 0; j < 8; ++j) {
      int scale = 0, min = 0;
      detail::unpack_k_scale(b.scales, j, scale, min);
      float unit = d * static_cast<float>(scale), offset = dmin * static_cast<float>(min);
      const std::uint8_t* q = b.q + 32 * (j / 2);
      for (int i = 0; i < 32; ++i) {
        int level = j % 2 ? q[i] >> 4 : q[i] & 15;
        out[32 * j + i] = unit * static_cast<float>(level) - offset;
      }
    }
  }
  static void encode(const float* x, Block& b) {
    float d = 0, dmin = 0;
    std::uint8_t levels[256];
    detail::encode_k_groups(x, 15, d, dmin, b.scales, levels,
                            [](float v) { return fp16_to_float(float_to_fp16(v)); });
    b.d = float_to_fp16(d), b.dmin = float_to_fp16(dmin);
    for (int c = 0; c < 4; ++c)
      for (int i = 0; i < 32; ++i)
        b.q[32 * c + i] =
            static_cast<std::uint8_t>(levels[64 * c + i] | (levels[64 * c + 32 + i] << 4));
  }
};

}  // namespace vitrine
