// odd3: a format that only tests have, to show that a header of quant/ is enough. 24 weights of
// three bits with one fp16 scale, in 11 bytes: neither size divides what backends like to read.
//   byte 0..1   d  fp16          w[i] = d * (q[i] - 4)
//   byte 2..10  q: bits 3i, 3i + 1, 3i + 2 of the 72 are those of weight i
#pragma once

#include <algorithm>
#include <cmath>

#include "quant/format.h"
#include "quant/half.h"

namespace vitrine {

struct ODD3 {
  static constexpr FormatInfo kInfo{"odd3", DType{60000}, 24, 11, true};
  struct Block {
    std::uint8_t d[2];
    std::uint8_t q[9];
  };
  static constexpr void decode(const Block& b, float* out) {
    float d = fp16_to_float(static_cast<std::uint16_t>(b.d[0] | b.d[1] << 8));
    for (int i = 0; i < 24; ++i) {
      int level = 0;
      for (int bit = 0; bit < 3; ++bit)
        level |= (b.q[(3 * i + bit) / 8] >> ((3 * i + bit) % 8) & 1) << bit;
      out[i] = d * static_cast<float>(level - 4);
    }
  }
  // The value of largest magnitude maps to -4, whose range is one step wider.
  static void encode(const float* x, Block& b) {
    float extreme = 0;
    for (int i = 0; i < 24; ++i)
      if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
    float d = extreme / -4, inverse = d != 0 ? 1 / d : 0;
    std::uint16_t half = float_to_fp16(d);
    b.d[0] = static_cast<std::uint8_t>(half & 255), b.d[1] = static_cast<std::uint8_t>(half >> 8);
    std::fill(std::begin(b.q), std::end(b.q), std::uint8_t{0});
    for (int i = 0; i < 24; ++i) {
      int level = std::clamp(static_cast<int>(std::lround(x[i] * inverse)) + 4, 0, 7);
      for (int bit = 0; bit < 3; ++bit)
        b.q[(3 * i + bit) / 8] |=
            static_cast<std::uint8_t>((level >> bit & 1) << ((3 * i + bit) % 8));
    }
  }
};

}  // namespace vitrine
