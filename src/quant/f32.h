// f32: plain floats.
#pragma once

#include "quant/format.h"

namespace vitrine {

struct F32 {
  static constexpr FormatInfo kInfo = ggml_info("f32", false);
  struct Block {
    float w;
  };
  static constexpr void decode(const Block& b, float* out) { *out = b.w; }
  static void encode(const float* x, Block& b) { b.w = *x; }
};

}  // namespace vitrine
