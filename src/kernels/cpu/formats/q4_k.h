// q4_k on the cpu: groups with a scale and a minimum (detail/k_groups.h), levels of four bits.
#pragma once

#include "kernels/cpu/formats/detail/k_groups.h"
#include "quant/q4_k.h"

namespace vitrine::cpu {

struct PanelsQ4_K : KGroupPanels<Q4_K, 0> {
  static void pack_row(std::byte* panel, std::int64_t n, const std::byte* row, std::int64_t K) {
    pack_row_with(panel, n, row, K, [](const Q4_K::Block&, int, std::byte*) {});
  }
};

}  // namespace vitrine::cpu

#if defined(VT_ISA)
namespace vitrine::cpu::VT_ISA {

template <>
struct BytesOf<PanelsQ4_K> : KGroupBytes<PanelsQ4_K::kSteps, 0> {};

}  // namespace vitrine::cpu::VT_ISA
#endif

#if defined(VT_AMX_INTEGERS)
namespace vitrine::cpu::amx {

// Two bytes of a word are multiplied at once: neither product has more than eight bits.
template <>
struct IntegersOf<PanelsQ4_K> : LevelsWithMins<PanelsQ4_K::kSteps, 0, 4> {
  static constexpr int kFirstShift = 4;
  static constexpr bool kThird = false;
  static constexpr bool kSignedFirst = false, kSignedRest = false, kSignedCoarse = false;
  struct Bytes {
    Vb coarse, rest;
    explicit Bytes(Vb scale)
        : coarse(both_words(IntegersOf::coarse(scale))),
          rest(both_words(_mm512_slli_epi32(and_(scale, integers(kCoarse - 1)), 2))) {}
  };
  static void bytes(Vb level, const Bytes& make, Vb& first, Vb& rest, Vb&) {
    first = _mm512_mullo_epi16(level, make.coarse), rest = _mm512_mullo_epi16(level, make.rest);
  }
};

}  // namespace vitrine::cpu::amx
#endif
