// q5_k on the cpu: groups with a scale and a minimum (detail/k_groups.h), behind the nibbles of a
// step two tiles of fifth bits.
#pragma once

#include "kernels/cpu/formats/detail/k_groups.h"
#include "quant/q5_k.h"

namespace vitrine::cpu {

struct PanelsQ5_K : KGroupPanels<Q5_K, 1> {
  static void pack_row(std::byte* panel, std::int64_t n, const std::byte* row, std::int64_t K) {
    pack_row_with(panel, n, row, K, [&](const Q5_K::Block& b, int j, std::byte* step) {
      const StepLevels fifths = levels_of(b.high, j, 1);
      std::uint64_t even = 0, odd = 0;
      for (int e = 0; e < 4; ++e) {
        even |= _pext_u64(fifths.eight[e], 0x0001000100010001) << (4 * e);
        odd |= _pext_u64(fifths.eight[e], 0x0100010001000100) << (4 * e);
      }
      put_word(high_tile(step, n, 1), 0, n % 16, even, odd);
    });
  }
};

}  // namespace vitrine::cpu

#if defined(VT_ISA)
namespace vitrine::cpu::VT_ISA {

template <>
struct BytesOf<PanelsQ5_K> : KGroupBytes<PanelsQ5_K::kSteps, 1> {};

}  // namespace vitrine::cpu::VT_ISA
#endif

#if defined(VT_AMX_INTEGERS)
namespace vitrine::cpu::amx {

template <>
struct IntegersOf<PanelsQ5_K> : LevelsWithMins<PanelsQ5_K::kSteps, 1, 8> {
  static constexpr int kFirstShift = 6;
  static constexpr bool kThird = true;
  static constexpr bool kSignedFirst = true, kSignedRest = true, kSignedCoarse = false;
  struct Bytes {
    Weight16 weight;
    Vb coarse;
    explicit Bytes(Vb scale) : weight(scale), coarse(both_words(IntegersOf::coarse(scale))) {}
  };
  static void bytes(Vb level, const Bytes& make, Vb& first, Vb& rest, Vb& coarse) {
    make.weight(level, first, rest);
    rest = _mm512_slli_epi16(rest, log2_of(kFine));
    coarse = _mm512_mullo_epi16(level, make.coarse);
  }
};

}  // namespace vitrine::cpu::amx
#endif
