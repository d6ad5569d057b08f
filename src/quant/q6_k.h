// q6_k: 256 weights in 16 groups of 16, 210 bytes, 6.5625 bits a weight.
//   byte 0..127    low four bits, 64 bytes for every 128 weights
//   byte 128..191  high two bits, 32 bytes for every 128 weights
//   byte 192..207  scale[16] int8
//   byte 208..209  d fp16            w = d * scale[i / 16] * (q - 32)
// Within 128 weights, for l in 0..31: weight l is the low nibble of low[l] with bits 0-1 of
// high[l], l+32 low[l+32] with bits 2-3, l+64 the high nibble of low[l] with bits 4-5, l+96 of
// low[l+32].
#pragma once

#include <algorithm>
#include <cmath>

#include "quant/format.h"
#include "quant/half.h"

namespace vitrine {

struct Q6_K {
  static constexpr FormatInfo kInfo = ggml_info("q6_k", true);
  struct Block {
    std::uint8_t low[128];
    std::uint8_t high[64];
    std::int8_t scales[16];
    std::uint16_t d;
  };
  static constexpr void decode(const Block& b, float* out) {
    float d = fp16_to_float(b.d);
    for (int i = 0; i < 256; ++i) {
      int half = i / 128, quarter = i % 128 / 32, l = i % 32;
      int low = b.low[64 * half + 32 * (quarter & 1) + l] >> (quarter < 2 ? 0 : 4) & 15;
      int level = (low | ((b.high[32 * half + l] >> (2 * quarter)) & 3) << 4) - 32;
      out[i] = d * static_cast<float>(b.scales[i / 16]) * static_cast<float>(level);
    }
  }
  static void encode(const float* x, Block& b) {
    float scales[16], top = 0;
    for (int g = 0; g < 16; ++g) {
      float extreme = 0;
      for (int i = 0; i < 16; ++i)
        if (std::fabs(x[16 * g + i]) > std::fabs(extreme)) extreme = x[16 * g + i];
      scales[g] = extreme / -32;
      if (std::fabs(scales[g]) > std::fabs(top)) top = scales[g];
    }
    b.d = float_to_fp16(top / -128);
    float d = fp16_to_float(b.d);
    for (auto& v : b.low) v = 0;
    for (auto& v : b.high) v = 0;
    for (int g = 0; g < 16; ++g)
      b.scales[g] = static_cast<std::int8_t>(
          d != 0 ? std::clamp<long>(std::lround(scales[g] / d), -128, 127) : 0);
    for (int i = 0; i < 256; ++i) {
      float unit = d * static_cast<float>(b.scales[i / 16]);
      int level =
          unit != 0 ? static_cast<int>(std::clamp<long>(std::lround(x[i] / unit), -32, 31)) : 0;
      level += 32;
      int half = i / 128, quarter = i % 128 / 32, l = i % 32;
      b.low[64 * half + 32 * (quarter & 1) + l] |=
          static_cast<std::uint8_t>((level & 15) << (quarter < 2 ? 0 : 4));
      b.high[32 * half + l] |= static_cast<std::uint8_t>((level >> 4) << (2 * quarter));
    }
  }
};

}  // namespace vitrine
