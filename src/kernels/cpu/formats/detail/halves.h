// Panels of 16-bit weights: a step is two tiles of [16 pairs of k][16 outputs][2 k].
#pragma once

#include <cstring>

#include "kernels/cpu/panels.h"
#if defined(VT_ISA)
#include "kernels/cpu/isa/panels.h"
#endif

namespace vitrine::cpu {

struct HalfPanels : PanelsBase {
  static constexpr StepLayout kSteps{0, kStep16Bytes};
  static void pack_row(std::byte* panel, std::int64_t n, const std::byte* row, std::int64_t K) {
    auto place = [&](std::int64_t k) {
      std::byte* tile = panel + k / kStep * kStep16Bytes + n / 16 * (kStep16Bytes / 2);
      return tile + (k % kStep / 2 * 16 + n % 16) * 4;
    };
    for (std::int64_t k = 0; k + 1 < K; k += 2) std::memcpy(place(k), row + k * 2, 4);
    if (K % 2 != 0) std::memcpy(place(K - 1), row + (K - 1) * 2, 2);
  }
};

}  // namespace vitrine::cpu

#if defined(VT_ISA)
namespace vitrine::cpu::VT_ISA {

// load_pairs(p, even, odd): the two k of W outputs.
template <auto load_pairs>
struct DecodeHalves {
  static constexpr int kGroup = 2;
  static constexpr StepLayout kSteps = HalfPanels::kSteps;
  static void decode(const std::byte* panel, std::int64_t k, Vf w[][kVecs]) {
    const std::byte* step = panel + k / kStep * kStep16Bytes + k % kStep / 2 * 64;
    for (int v = 0; v < kVecs; ++v) {
      const std::byte* p =
          step + v / kTileVecs * (kStep16Bytes / 2) + v % kTileVecs * Vf::kWidth * 4;
      load_pairs(p, w[0][v], w[1][v]);
    }
  }
};

}  // namespace vitrine::cpu::VT_ISA
#endif
