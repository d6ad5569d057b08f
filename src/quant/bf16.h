// bf16: the upper half of an f32.
#pragma once

#include "quant/format.h"
#include "quant/half.h"

namespace vitrine {

struct BF16 {
  static constexpr FormatInfo kInfo = ggml_info("bf16", false);
  struct Block {
    std::uint16_t w;
  };
  static constexpr void decode(const Block& b, float* out) { *out = bf16_to_float(b.w); }
  static void encode(const float* x, Block& b) { b.w = float_to_bf16(*x); }
};

}  // namespace vitrine
