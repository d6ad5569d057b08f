// q4_0 on the cpu: [K/256]{ [32] bf16 inverse, 8 of { [32] fp16 scale, 2 tiles of nibbles } }. An
// inverse times the scales of its 256 k is at most 495 in size: AMX takes them as integers.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/cpu/formats/detail/nibbles.h"
#include "quant/q4_0.h"

namespace vitrine::cpu {

struct PanelsQ4_0 : NibblePanels {
  using Format = Q4_0;
  static constexpr StepLayout kSteps{64, kHead + 2 * kNibbleTile};
  static constexpr IntegerForm kIntegers{2, 8, 1};

  static void pack_row(std::byte* panel, std::int64_t n, const std::byte* row, std::int64_t K) {
    const std::int64_t steps = K / kStep;
    for (std::int64_t s = 0; s < steps; ++s) {
      if (s % kSuper == 0) {
        const std::uint16_t inverse =
            inverse_of(row + s * Q4_0::kInfo.bytes, std::min<std::int64_t>(kSuper, steps - s), 495);
        std::memcpy(panel + kSteps.super_at(s) + n * 2, &inverse, 2);
      }
      Q4_0::Block b;
      std::memcpy(&b, row + s * Q4_0::kInfo.bytes, sizeof b);
      std::byte* step = panel + kSteps.at(s);
      std::memcpy(step + n * 2, &b.d, 2);
      StepLevels levels;
      std::memcpy(&levels, b.q, 16);
      for (int e = 0; e < 2; ++e) levels.eight[e + 2] = levels.eight[e] >> 4;
      put_nibbles(step, n, levels);
    }
  }

 private:
  // The largest bf16 that times the scale of each of these blocks is at most `most`; of no scale 1,
  // of a scale that is not finite NaN.
  static std::uint16_t inverse_of(const std::byte* blocks, std::int64_t count, float most) {
    float largest = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint16_t half;
      std::memcpy(&half, blocks + i * Q4_0::kInfo.bytes, 2);
      const float scale = std::abs(fp16_to_float(half));
      if (!std::isfinite(scale)) return 0x7FC0;
      largest = std::max(largest, scale);
    }
    return static_cast<std::uint16_t>(
        std::bit_cast<std::uint32_t>(largest == 0 ? 1 : most / largest) >> 16);
  }
};

}  // namespace vitrine::cpu

#if defined(VT_ISA)
namespace vitrine::cpu::VT_ISA {

template <>
struct BytesOf<PanelsQ4_0> : Nibbles<PanelsQ4_0::kSteps, 0> {
  static constexpr int kGroups = 1, kBias = 8, kRun = 8;
  static constexpr bool kOffsets = false;
  static Scales scales(const std::byte*, const std::byte* step, int v, int) {
    return {load_f16(step + v * Vf::kWidth * 2), zero()};
  }
};

}  // namespace vitrine::cpu::VT_ISA
#endif

#if defined(VT_AMX_INTEGERS)
namespace vitrine::cpu::amx {

template <>
struct IntegersOf<PanelsQ4_0> : Levels<PanelsQ4_0::kSteps, 0, 32> {
  static constexpr int kBias = 8, kFirstShift = 5;
  static constexpr bool kThird = false;
  static constexpr bool kSignedFirst = true, kSignedRest = true, kSignedCoarse = true;
  static Vb scale(const std::byte* super, const std::byte* step, int tile, int) {
    return _mm512_cvtps_epi32(
        _mm512_mul_ps(load_f16(step + tile * 32).v, load_bf16(super + tile * 32).v));
  }
  // Of a scale of at most 495; -15..16 are left of it.
  static Vb coarse(Vb scale) { return _mm512_srai_epi32(_mm512_add_epi32(scale, integers(15)), 5); }
  static __m512 unit(const std::byte* super, int tile) {
    return in_units(_mm512_div_ps(_mm512_set1_ps(1), load_bf16(super + tile * 32).v));
  }
  struct Bytes {
    ByteProduct<8, 15> first, rest;
    explicit Bytes(Vb scale)
        : first(coarse(scale)),
          rest(_mm512_sub_epi32(scale, _mm512_slli_epi32(coarse(scale), 5))) {}
  };
  static void bytes(Vb level, const Bytes& make, Vb& first, Vb& rest, Vb&) {
    first = make.first(level), rest = make.rest(level);
  }
};

}  // namespace vitrine::cpu::amx
#endif
