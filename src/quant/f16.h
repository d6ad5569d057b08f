// f16: IEEE half precision.
#pragma once

#include "quant/format.h"
#include "quant/half.h"

namespace vitrine {

struct F16 {
  static constexpr FormatInfo kInfo = ggml_info("f16", false);
  struct Block {
    std::uint16_t w;
  };
  static constexpr void decode(const Block& b, float* out) { *out = fp16_to_float(b.w); }
  static void encode(const float* x, Block& b) { b.w = float_to_fp16(*x); }
};

}  // namespace vitrine
