// q8_0 on the cpu: a step is { [32] fp16 scale, 2 tiles of [8 quads of k][16 outputs][4 k] int8 }.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/cpu/panels.h"
#include "quant/q8_0.h"
#if defined(VT_ISA)
#include "kernels/cpu/isa/levels.h"
#endif
#if defined(__AVX512FP16__)
#include "kernels/cpu/amx_unpack.h"
#endif

namespace vitrine::cpu {

struct PanelsQ8_0 : PanelsBase {
  using Format = Q8_0;
  static constexpr Arithmetics kArithmetic{Arithmetic::kBytes, Arithmetic::kBytes,
                                           Arithmetic::kAmx};
  static constexpr StepLayout kSteps{0, kHead + kPanel* kStep};
  static void pack_row(std::byte* panel, std::int64_t n, const std::byte* row, std::int64_t K) {
    for (std::int64_t s = 0; s < K / kStep; ++s) {
      const std::byte* block = row + s * Q8_0::kInfo.bytes;
      std::byte* step = panel + kSteps.at(s);
      std::memcpy(step + n * 2, block, 2);
      std::byte* tile = step + kHead + n / 16 * (kPanel * kStep / 2);
      for (int quad = 0; quad < kStep / 4; ++quad)
        std::memcpy(tile + quad * 64 + n % 16 * 4, block + 2 + quad * 4, 4);
    }
  }
  // The largest scale times the largest level.
  static float largest(const std::byte* panel, std::int64_t steps) {
    float largest = 0;
    for (std::int64_t s = 0; s < steps; ++s) {
      std::uint16_t scales[kPanel], top = 0;
      std::memcpy(scales, panel + kSteps.at(s), sizeof scales);
      for (std::uint16_t half : scales) top = std::max<std::uint16_t>(top, half & 0x7FFF);
      largest = std::max(largest, fp16_to_float(top) * 128);
    }
    return largest;
  }
};

}  // namespace vitrine::cpu

#if defined(VT_ISA)
namespace vitrine::cpu::VT_ISA {

template <>
struct BytesOf<PanelsQ8_0> {
  static constexpr StepLayout kSteps = PanelsQ8_0::kSteps;
  static constexpr int kGroups = 1, kBias = kSignedBias, kRun = 1;
  static constexpr bool kOffsets = false;
  static void quads(const std::byte* step, int v, Vb q[kQuads]) {
    const std::byte* from = tile_of(step + kHead, kPanel * kStep / 2, v);
    for (int i = 0; i < kQuads; ++i) q[i] = load_signed(from + i * 64);
  }
  static Vb product(Vb sum, Vb w, Vb x) { return dot_signed(sum, w, x); }
  static Scales scales(const std::byte*, const std::byte* step, int v, int) {
    return {load_f16(step + v * Vf::kWidth * 2), zero()};
  }
};

}  // namespace vitrine::cpu::VT_ISA
#endif

#if defined(__AVX512FP16__)
namespace vitrine::cpu::to_tiles {

// A word of a quad of k has its bytes 0, 1 or 2, 3: as the high byte of a word a level is 256 times
// itself, and the pairs of a tile are (0, 2) and (1, 3). amx_convert() has the same order.
template <>
struct TilesOf<PanelsQ8_0> {
  static constexpr StepLayout kSteps = PanelsQ8_0::kSteps;
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
#endif
