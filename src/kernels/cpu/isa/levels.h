// The levels of a quantised step as bytes: what integer dot products take.
#pragma once

#include "kernels/cpu/isa/bytes.h"
#include "kernels/cpu/isa/panels.h"

namespace vitrine::cpu::VT_ISA {

constexpr int kQuads = kStep / 4;

// Bytes of a step that belong to vector v of the panel, for tiles of `tile` bytes.
inline const std::byte* tile_of(const std::byte* tiles, int tile, int v) {
  return tiles + v / kTileVecs * tile + v % kTileVecs * Vf::kWidth * 4;
}

// Nibbles with none, one or two more bits. Quads hold k 0,4,1,5 and 2,6,3,7 of every eight.
template <StepLayout kLayout, int kHighBits>
struct Nibbles {
  static constexpr StepLayout kSteps = kLayout;
  static Vb product(Vb sum, Vb w, Vb x) { return dot_unsigned(sum, w, x); }
  static void quads(const std::byte* step, int v, Vb q[kQuads]) {
    const std::byte* nibbles = tile_of(step + kHead, kNibbleTile, v);
    const std::byte* high = tile_of(step + kHead + 2 * kNibbleTile, 64 * kHighBits, v);
    const Vb low4 = bytes(15);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      Vb both = load_bytes(nibbles + j * 64);
      q[2 * j] = and_(both, low4);
      q[2 * j + 1] = and_(shift_right(both, 4), low4);
      if constexpr (kHighBits == 1)  // pair p is bit p
#pragma GCC unroll 2
        for (int r = 0; r < 2; ++r)
          q[2 * j + r] = or_(q[2 * j + r], spread<1>(load_bytes(high), 4 * j + r));
      if constexpr (kHighBits == 2)  // pair i of a vector is bits 2i, 2i+1
#pragma GCC unroll 2
        for (int r = 0; r < 2; ++r)
          q[2 * j + r] =
              or_(q[2 * j + r], spread<2>(load_bytes(high + j / 2 * 64), 4 * (j % 2) + r));
    }
  }

 private:
  // In every word: the bits of a pair go to bit 4, those of the second next pair to bit 12.
  template <int kBits>
  static Vb spread(Vb word, int pair) {
    constexpr int kMask = kBits == 1 ? 0x10 : 0x30;
#if defined(__AVX512VBMI__)
    // A byte from any eight bits of its 64.
    std::uint64_t from = 0;
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
      from |= static_cast<std::uint64_t>((i / 2 * 16 + kBits * (pair + i % 2 * 2) + 60) % 64)
              << (8 * i);
    const Vb at = _mm512_set1_epi64(static_cast<long long>(from));
    return and_(_mm512_multishift_epi64_epi8(at, word), bytes(kMask));
#else
    const Vb bits = shift_right(word, kBits * pair);
    return or_(and_(shift_left(bits, 4), words(kMask)),
               and_(shift_left(bits, 12 - 2 * kBits), words(kMask << 8)));
#endif
  }
};

// 16 floats' bytes to the order of the quads.
inline __m128i quad_order(__m128i sixteen) {
  return _mm_shuffle_epi8(sixteen,
                          _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
}

}  // namespace vitrine::cpu::VT_ISA
