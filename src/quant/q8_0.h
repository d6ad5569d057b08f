// q8_0: 32 weights with one fp16 scale, 34 bytes, 8.5 bits a weight.
//   byte 0..1   d  fp16          w[i] = d * q[i]
//   byte 2..33  q[0..31] int8
#pragma once

#include <algorithm>
#include <cmath>

#include "quant/format.h"
#include "quant/half.h"

namespace vitrine {

struct Q8_0 {
  static constexpr FormatInfo kInfo = ggml_info("q8_0", true);
  struct Block {
    std::uint16_t d;
    std::int8_t q[32];
  };
  static constexpr void decode(const Block& b, float* out) {
    float d = fp16_to_float(b.d);
    for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(b.q[i]);
  }
  static void encode(const float* x, Block& b) {
    float amax = 0;
    for (int i = 0; i < 32; ++i) amax = std::max(amax, std::fabs(x[i]));
    float d = amax / 127, inverse = d > 0 ? 1 / d : 0;
    b.d = float_to_fp16(d);
    for (int i = 0; i < 32; ++i) b.q[i] = static_cast<std::int8_t>(std::lround(x[i] * inverse));
  }
};

}  // namespace vitrine
