// f32 on the cpu: a panel is [K][32] floats.
#pragma once

#include <cstring>

#include "kernels/cpu/panels.h"
#include "quant/f32.h"
#if defined(VT_ISA)
#include "kernels/cpu/isa/panels.h"
#endif

namespace vitrine::cpu {

struct PanelsF32 : PanelsBase {
  using Format = F32;
  static constexpr Arithmetics kArithmetic{Arithmetic::kFp32, Arithmetic::kFp32, Arithmetic::kFp32};
  static constexpr StepLayout kSteps{0, kPanel* kStep * 4};
  static void pack_row(std::byte* panel, std::int64_t n, const std::byte* row, std::int64_t K) {
    for (std::int64_t k = 0; k < K; ++k) std::memcpy(panel + (k * kPanel + n) * 4, row + k * 4, 4);
  }
};

}  // namespace vitrine::cpu

#if defined(VT_ISA)
namespace vitrine::cpu::VT_ISA {

template <>
struct DecodeOf<PanelsF32> {
  static constexpr int kGroup = 1;
  static constexpr StepLayout kSteps = PanelsF32::kSteps;
  static void decode(const std::byte* panel, std::int64_t k, Vf w[][kVecs]) {
    const float* p = reinterpret_cast<const float*>(panel) + k * kPanel;
    for (int v = 0; v < kVecs; ++v) w[0][v] = load(p + v * Vf::kWidth);
  }
};

}  // namespace vitrine::cpu::VT_ISA
#endif
