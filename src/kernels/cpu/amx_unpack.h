// Panels of bytes as tiles of bf16, for the tile unit.
//
// A weight, a level times the scale of its group, is computed in fp16, which has 32 lanes to a
// vector and three bits more than bf16. Its bits become those of a bf16 by leaving the exponent as
// it is and rounding the last three bits away, so the number is 2^-112 of the weight. To use fp16's
// range, scales are first multiplied by 2^power of their matrix (PackedWeight::power()).
// Activations carry the inverse, 2^(112 - power), which leaves them finite as long as they are
// below 2^31 divided by the largest weight.
//
// Of a format's panels, in its file in formats/, TilesOf<Panels>::step() makes the two tiles of 32
// k and 32 outputs, and calls after(i) when row i of their 32 is made.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/kernels.h"

namespace vitrine::cpu::to_tiles {

template <typename Panels>
struct TilesOf;

inline __m512h halves(__m512i v) { return _mm512_castsi512_ph(v); }
inline __m512h load_halves(const std::byte* p) { return halves(_mm512_load_si512(p)); }

// Round half away from zero: the sign is a bit of its own.
inline __m512i to_bf16(__m512h v) {
  __m512i eighth = _mm512_mulhrs_epi16(_mm512_castph_si512(v), _mm512_set1_epi16(1 << 12));
  return _mm512_and_si512(eighth, _mm512_set1_epi16(static_cast<short>(0x8FFF)));
}

struct alignas(64) Words {
  std::uint16_t at[32];
};

// Of 32 outputs those of one tile, each twice: for both k of a pair.
inline __m512h of_tile(__m512h outputs, int tile) {
  static constexpr auto kFrom = [](int first) {
    Words words{};
    for (int i = 0; i < 32; ++i) words.at[i] = static_cast<std::uint16_t>(first + i / 2);
    return words;
  };
  static constexpr Words kOutputs[2] = {kFrom(0), kFrom(16)};
  return halves(
      _mm512_permutexvar_epi16(_mm512_load_si512(kOutputs[tile].at), _mm512_castph_si512(outputs)));
}

}  // namespace vitrine::cpu::to_tiles
