// f16 on the cpu: decoded to f32 by every instruction set.
#pragma once

#include "kernels/cpu/formats/detail/halves.h"
#include "quant/f16.h"

namespace vitrine::cpu {

struct PanelsF16 : HalfPanels {
  using Format = F16;
  static constexpr Arithmetics kArithmetic{Arithmetic::kFp32, Arithmetic::kFp32, Arithmetic::kFp32};
};

}  // namespace vitrine::cpu

#if defined(VT_ISA)
namespace vitrine::cpu::VT_ISA {

template <>
struct DecodeOf<PanelsF16> : DecodeHalves<load_f16_pairs> {};

}  // namespace vitrine::cpu::VT_ISA
#endif
