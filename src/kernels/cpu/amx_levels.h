// What AMX makes of levels of four to six bits and their scales; see matmul_amx_integers.cpp.
#pragma once

#include <algorithm>

#include "kernels/cpu/isa/levels.h"

namespace vitrine::cpu::amx {

// 256 k, and the tiles of 64 k in which activations lie (IntegerRows).
inline constexpr int kSuperK = kSuper * kStep, kChunks = kSuperK / 64, kTileBytes = 1024;

inline Vb load_u8_i32(const std::byte* p) {
  return _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
}
inline Vb load_i8_i32(const std::byte* p) {
  return _mm512_cvtepi8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
}

// Of a format's panels, in its file in formats/: quads() gives levels, of which kBias is to be
// taken off; scale() those of a group of 16 outputs, coarse() the same over kCoarse; unit() the
// float of 256 k. Sums are in units of kUnit: high * level * scale counts kFine, low * level *
// coarse counts kLow, which is in the low parts already (IntegerForm).
//
// For the tile unit bytes() makes three of every weight, or two where the first is also the third
// (not kThird):
//   high * first   counts 1 << kFirstShift
//   high * rest    counts 1
//   low * coarse   counts 1
template <typename Panels>
struct IntegersOf;

constexpr int log2_of(int n) { return n == 1 ? 0 : 1 + log2_of(n / 2); }

template <StepLayout kLayout, int kHighBits, int kOver>
struct Levels : Nibbles<kLayout, kHighBits> {
  static constexpr int kGroups = 1, kBias = 0, kCoarse = kOver, kUnit = std::min(kOver, 16);
  static constexpr int kFine = 16 / kUnit, kLow = kCoarse / kUnit;
  static constexpr bool kMins = false;
  static __m512 in_units(__m512 d) { return _mm512_mul_ps(d, _mm512_set1_ps(kUnit)); }
};

// Words of 16 outputs, each twice: for both pairs of k of a quad.
inline Vb both_words(Vb v) { return or_(and_(v, integers(0xFFFF)), _mm512_slli_epi32(v, 16)); }
// The low bytes of words of 16 outputs, each four times.
inline Vb four_bytes(Vb v) {
  const Vb order =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12));
  return _mm512_shuffle_epi8(v, order);
}
// Of words, the low byte of `even` and of `odd`.
inline Vb bytes_of(Vb even, Vb odd) {
  return _mm512_ternarylogic_epi32(words(0xFF), even, _mm512_slli_epi16(odd, 8), 0xCA);
}

// (level - bias) * factor, where level * |factor| is less than 256: two bytes of a word are
// multiplied at once. Where the factor is negative, kMost - level takes the level's place.
template <int kBias, int kMost>
struct ByteProduct {
  Vb flip, factor, offset;
  explicit ByteProduct(Vb factors) {
    const Vb size = _mm512_abs_epi32(factors), negative = _mm512_srai_epi32(factors, 31);
    flip = and_(negative, bytes(kMost));
    factor = both_words(size);
    // bias * size, or (kMost - bias) * size
    offset = four_bytes(_mm512_mullo_epi32(
        size, _mm512_mask_blend_epi32(_mm512_movepi32_mask(negative), integers(kBias),
                                      integers(kMost - kBias))));
  }
  Vb operator()(Vb level) const {
    const Vb product = _mm512_mullo_epi16(_mm512_xor_si512(level, flip), factor);
    return _mm512_sub_epi8(product, offset);
  }
};

// Levels are not negative, and what a coarse scale leaves out of a scale is not either: low parts
// of one sign would miss their share of every weight. So half the largest level counts in full:
// kHalf * left_out() times the sum of a group's low parts is added.
template <StepLayout kLayout, int kHighBits, int kOver>
struct LevelsWithMins : Levels<kLayout, kHighBits, kOver> {
  static constexpr bool kMins = true;
  static constexpr int kHalf = 8 << kHighBits;
  // kHalf of what coarse() leaves out, in units.
  static Vb left_out(Vb scale) {
    constexpr int kTimes = kHalf / LevelsWithMins::kUnit;
    return _mm512_slli_epi32(and_(scale, integers(kOver - 1)), log2_of(kTimes));
  }
  static Vb scale(const std::byte*, const std::byte* step, int tile, int) {
    return load_u8_i32(step + tile * 16);
  }
  static Vb coarse(Vb scale) {
    return _mm512_srli_epi32(scale, static_cast<unsigned>(log2_of(kOver)));
  }
  static Vb min(const std::byte* step, int tile) { return load_u8_i32(step + kPanel + tile * 16); }
  static __m512 unit(const std::byte* super, int tile) {
    return LevelsWithMins::in_units(load_f16(super + tile * 32).v);
  }
  static __m512 min_unit(const std::byte* super, int tile) {
    return load_f16(super + kPanel * 2 + tile * 32).v;
  }
};

// A weight in 16 bits: its upper ones, and its last five.
struct Weight16 {
  Vb scale;
  explicit Weight16(Vb scales) : scale(both_words(scales)) {}
  void operator()(Vb level, Vb& upper, Vb& last) const {
    const Vb even = _mm512_mullo_epi16(and_(level, words(0xFF)), scale);
    const Vb odd = _mm512_mullo_epi16(_mm512_srli_epi16(level, 8), scale);
    upper = _mm512_ternarylogic_epi32(words(0xFF), _mm512_srai_epi16(even, 5),
                                      _mm512_slli_epi16(odd, 3), 0xCA);
    last = and_(bytes_of(even, odd), amx::bytes(31));
  }
};

}  // namespace vitrine::cpu::amx
