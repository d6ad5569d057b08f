// bf16 on the cpu: what VDPBF16PS and TDPBF16PS take as it is.
#pragma once

#include "kernels/cpu/formats/detail/halves.h"
#include "quant/bf16.h"

namespace vitrine::cpu {

struct PanelsBF16 : HalfPanels {
  using Format = BF16;
  static constexpr Arithmetics kArithmetic{Arithmetic::kFp32, Arithmetic::kBf16, Arithmetic::kAmx};
  static constexpr bool kBf16Tiles = true;
};

}  // namespace vitrine::cpu

#if defined(VT_ISA)
namespace vitrine::cpu::VT_ISA {

template <>
struct DecodeOf<PanelsBF16> : DecodeHalves<load_bf16_pairs> {};

}  // namespace vitrine::cpu::VT_ISA
#endif
