// q6_k on the cpu: [K/256]{ [32] fp16 d, 8 of { [2 halves of 16 k][32] i8 scale, 2 tiles of
// nibbles, 2 tiles of fifth and sixth bits } }.
#pragma once

#include "kernels/cpu/formats/detail/nibbles.h"
#include "quant/q6_k.h"

namespace vitrine::cpu {

struct PanelsQ6_K : NibblePanels {
  using Format = Q6_K;
  static constexpr StepLayout kSteps{64, kHead + 2 * (kNibbleTile + 2 * kBitTile)};
  static constexpr IntegerForm kIntegers{2, 32, 2};

  static void pack_row(std::byte* panel, std::int64_t n, const std::byte* row, std::int64_t K) {
    Q6_K::Block b;
    for (std::int64_t s = 0; s < K / kStep; ++s) {
      std::byte* step = panel + kSteps.at(s);
      int j = static_cast<int>(s % kSuper);
      if (j == 0) {
        std::memcpy(&b, row + s / kSuper * Q6_K::kInfo.bytes, sizeof b);
        std::memcpy(panel + kSteps.super_at(s) + n * 2, &b.d, 2);
      }
      for (int half = 0; half < 2; ++half)
        step[half * kPanel + n] = static_cast<std::byte>(b.scales[2 * j + half]);
      put_nibbles(step, n, levels_of(b.low + 64 * (j / 4) + 32 * (j & 1), j % 4 < 2 ? 0 : 4, 15));
      put_high(high_tile(step, n, 2), n % 16, levels_of(b.high + 32 * (j / 4), j % 4 * 2, 3));
    }
  }

 private:
  static void put_high(std::byte* tile, std::int64_t lane, const StepLevels& bits) {
    for (int v = 0; v < 2; ++v) {
      std::uint64_t even = 0, odd = 0;
      for (int e = 0; e < 2; ++e) {
        even |= _pext_u64(bits.eight[2 * v + e], 0x0003000300030003) << (8 * e);
        odd |= _pext_u64(bits.eight[2 * v + e], 0x0300030003000300) << (8 * e);
      }
      put_word(tile, v, lane, even, odd);
    }
  }
};

}  // namespace vitrine::cpu

#if defined(VT_ISA)
namespace vitrine::cpu::VT_ISA {

template <>
struct BytesOf<PanelsQ6_K> : Nibbles<PanelsQ6_K::kSteps, 2> {
  static constexpr int kGroups = 2, kBias = 32, kRun = 2;
  static constexpr bool kOffsets = false;
  static Scales scales(const std::byte* super, const std::byte* step, int v, int group) {
    constexpr int W = Vf::kWidth;
    return {mul(load_f16(super + v * W * 2), load_i8(step + group * kPanel + v * W)), zero()};
  }
};

}  // namespace vitrine::cpu::VT_ISA
#endif

#if defined(VT_AMX_INTEGERS)
namespace vitrine::cpu::amx {

// The largest weight of a block has level -32 and scale -128, whose product over 32 is no byte: so
// the scale is taken with the other sign. From -113 on its coarse one is no byte, and -3 is taken.
template <>
struct IntegersOf<PanelsQ6_K> : Levels<PanelsQ6_K::kSteps, 2, 32> {
  static constexpr int kGroups = 2, kBias = 32, kFirstShift = 5;
  static constexpr bool kThird = true;
  static constexpr bool kSignedFirst = true, kSignedRest = true, kSignedCoarse = true;
  static Vb scale(const std::byte*, const std::byte* step, int tile, int group) {
    return _mm512_sub_epi32(integers(0), load_i8_i32(step + group * kPanel + tile * 16));
  }
  static Vb coarse(Vb scale) {
    return _mm512_max_epi32(_mm512_srai_epi32(_mm512_add_epi32(scale, integers(16)), 5),
                            integers(-3));
  }
  static __m512 unit(const std::byte* super, int tile) {
    return _mm512_sub_ps(_mm512_setzero_ps(), in_units(load_f16(super + tile * 32).v));
  }
  struct Bytes {
    Weight16 weight;
    Vb scale;
    ByteProduct<32, 63> coarse;
    explicit Bytes(Vb scales)
        : weight(scales), scale(four_bytes(scales)), coarse(IntegersOf::coarse(scales)) {}
  };
  static void bytes(Vb level, const Bytes& make, Vb& first, Vb& rest, Vb& coarse) {
    make.weight(level, first, rest);
    first = _mm512_sub_epi8(first, make.scale);  // 32 of a scale, over 32
    coarse = make.coarse(level);
  }
};

}  // namespace vitrine::cpu::amx
#endif
