// Panels of blocks of 256 weights in eight groups of 32, each with a scale and a minimum
// (quant/detail/k_scales.h):
//   [K/256]{ [32] fp16 d, [32] fp16 dmin, 8 of { [32] u8 scale, [32] u8 min, tiles of levels } }
#pragma once

#include "kernels/cpu/formats/detail/nibbles.h"
#include "quant/detail/k_scales.h"

namespace vitrine::cpu {

template <typename Quant, int kHighBits>
struct KGroupPanels : NibblePanels {
  using Format = Quant;
  static constexpr StepLayout kSteps{128, kHead + 2 * (kNibbleTile + kHighBits * kBitTile)};
  static constexpr IntegerForm kIntegers{1, 0, 1};

  // put_high(block, j, step) adds the bits above the nibbles of group j.
  template <typename PutHigh>
  static void pack_row_with(std::byte* panel, std::int64_t n, const std::byte* row, std::int64_t K,
                            PutHigh&& put_high) {
    typename Format::Block b;
    for (std::int64_t s = 0; s < K / kStep; ++s) {
      int scale = 0, min = 0, j = static_cast<int>(s % kSuper);
      std::byte *super = panel + kSteps.super_at(s), *step = panel + kSteps.at(s);
      if (j == 0) {
        std::memcpy(&b, row + s / kSuper * Format::kInfo.bytes, sizeof b);
        std::memcpy(super + n * 2, &b.d, 2);
        std::memcpy(super + kPanel * 2 + n * 2, &b.dmin, 2);
      }
      detail::unpack_k_scale(b.scales, j, scale, min);
      step[n] = static_cast<std::byte>(scale);
      step[kPanel + n] = static_cast<std::byte>(min);
      put_nibbles(step, n, levels_of(b.q + 32 * (j / 2), j % 2 * 4, 15));
      put_high(b, j, step);
    }
  }
};

}  // namespace vitrine::cpu

#if defined(VT_ISA)
namespace vitrine::cpu::VT_ISA {

template <StepLayout kLayout, int kHighBits>
struct KGroupBytes : Nibbles<kLayout, kHighBits> {
  static constexpr int kGroups = 1, kBias = 0, kRun = kHighBits == 0 ? 8 : 4;
  static constexpr bool kOffsets = true;
  static Scales scales(const std::byte* super, const std::byte* step, int v, int) {
    const int n = v * Vf::kWidth;
    return {mul(load_f16(super + n * 2), load_u8(step + n)),
            sub(zero(), mul(load_f16(super + kPanel * 2 + n * 2), load_u8(step + kPanel + n)))};
  }
};

}  // namespace vitrine::cpu::VT_ISA
#endif
