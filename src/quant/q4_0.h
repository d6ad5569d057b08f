// q4_0: 32 weights with one fp16 scale, 18 bytes, 4.5 bits a weight.
//   byte 0..1   d  fp16          w[i]    = d * (low nibble of q[i] - 8)    i < 16
//   byte 2..17  q[0..15]         w[i+16] = d * (high nibble of q[i] - 8)
#pragma once

#include <algorithm>
#include <cmath>

#include "quant/format.h"
#include "quant/half.h"

namespace vitrine {

struct Q4_0 {
  static constexpr FormatInfo kInfo = ggml_info("q4_0", true);
  struct Block {
    std::uint16_t d;
    std::uint8_t q[16];
  };
  static constexpr void decode(const Block& b, float* out) {
    float d = fp16_to_float(b.d);
    for (int i = 0; i < 16; ++i) {
      out[i] = static_cast<float>((b.q[i] & 15) - 8) * d;
      out[i + 16] = static_cast<float>((b.q[i] >> 4) - 8) * d;
    }
  }
  // The value of largest magnitude maps to -8, whose range is one step wider.
  static void encode(const float* x, Block& b) {
    float extreme = 0;
    for (int i = 0; i < 32; ++i)
      if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
    float d = extreme / -8, inverse = d != 0 ? 1 / d : 0;
    b.d = float_to_fp16(d);
    auto level = [&](float w) { return std::min(15, static_cast<int>(w * inverse + 8.5f)); };
    for (int i = 0; i < 16; ++i)
      b.q[i] = static_cast<std::uint8_t>(level(x[i]) | (level(x[i + 16]) << 4));
  }
};

}  // namespace vitrine
