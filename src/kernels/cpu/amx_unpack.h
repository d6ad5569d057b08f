// Panels of q8_0 as tiles of bf16, for the tile unit.
//
// A weight, a level times the scale of its group, is computed in fp16, which has 32 lanes to a
// vector and three bits more than bf16. Its bits become those of a bf16 by leaving the exponent as
// it is and rounding the last three bits away, so the number is 2^-112 of the weight. To use fp16's
// range, scales are first multiplied by 2^power of their matrix (PackedWeight::power()).
// Activations carry the inverse, 2^(112 - power), which leaves them finite as long as they are
// below 2^31 divided by the largest weight.
//
// step() makes the two tiles of 32 k and 32 outputs, and calls after(i) when row i of their 32 is
// made.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/packed.h"

namespace vitrine::cpu::to_tiles {

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

// A word of a quad of k has its bytes 0, 1 or 2, 3: as the high byte of a word a level is 256 times
// itself, and the pairs of a tile are (0, 2) and (1, 3). amx_convert() has the same order.
struct FormatQ8 {
  static constexpr StepLayout kSteps = kStepsQ8;
  template <typename After>
  static void step(const std::byte* step, __m512h power, std::uint16_t* to, After&& after) {
    const __m512i high = _mm512_set1_epi16(static_cast<short>(0xFF00));
    const __m512h scales = _mm512_mul_ph(
        load_halves(step), _mm512_mul_ph(power, _mm512_set1_ph(static_cast<_Float16>(1.0 / 256))));
    for (int tile = 0; tile < 2; ++tile) {
      const __m512h scale = of_tile(scales, tile);
      auto put = [&](int row, __m512i levels) {
        _mm512_store_si512(to + tile * kTileWords + row * 32,
                           to_bf16(_mm512_mul_ph(_mm512_cvtepi16_ph(levels), scale)));
        after(tile * 16 + row);
      };
      for (int quad = 0; quad < 8; ++quad) {
        __m512i v = _mm512_load_si512(step + kHead + tile * (kPanel * kStep / 2) + quad * 64);
        put(2 * quad, _mm512_slli_epi16(v, 8));
        put(2 * quad + 1, _mm512_and_si512(v, high));
      }
    }
  }
};

}  // namespace vitrine::cpu::to_tiles
