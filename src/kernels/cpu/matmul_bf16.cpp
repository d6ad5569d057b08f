// bf16 products on AVX-512: activations and weights in bf16, accumulated in fp32 by VDPBF16PS.
//
// Arithmetic at every M: pairs of k in ascending order, one accumulator per output. (Not the bits
// of TDPBF16PS.) Work: up to 8 rows by 32 outputs in registers over a panel, which is read front to
// back once per 8 rows; one row by four panels at once, as so many streams from memory.
#include <immintrin.h>

#include "kernels/cpu/ahead.h"
#include "kernels/cpu/kernels.h"

namespace vitrine::cpu {
namespace {

// How far ahead of the work lines are fetched, over all panels.
constexpr int kAheadBytes = 8192;

// M rows from `first` on by P panels from p on. Loops over registers are unrolled: they would go
// through memory.
template <int M, int P>
void rows(const Bf16Args& a, int p, int first) {
  __m512 acc[P][2][M];
  for (auto& panel : acc)
    for (auto& tile : panel)
      for (__m512& sum : tile) sum = _mm512_setzero_ps();
  const std::byte* panels[P];
  for (int i = 0; i < P; ++i) panels[i] = a.panels.at(p + i);
  const std::uint16_t* x = a.x + tile_at(first, 0, a.steps);
  for (std::int64_t s = 0; s < a.steps; ++s, x += kTileWords)
#pragma GCC unroll 2
    for (int tile = 0; tile < 2; ++tile)
      for (int pair = 0; pair < 16; ++pair)
#pragma GCC unroll 4
        for (int i = 0; i < P; ++i) {
          const std::byte* at = panels[i] + s * kStep16Bytes + (tile * 16 + pair) * 64;
          Near{at + kAheadBytes / P}.fetch(1);
          const auto w = reinterpret_cast<__m512bh>(_mm512_loadu_si512(at));
#pragma GCC unroll 8
          for (int m = 0; m < M; ++m) {
            int words;
            __builtin_memcpy(&words, x + m * kStep + 2 * pair, 4);
            const auto both = reinterpret_cast<__m512bh>(_mm512_set1_epi32(words));
            acc[i][tile][m] = _mm512_dpbf16_ps(acc[i][tile][m], both, w);
          }
        }
  for (int i = 0; i < P; ++i)
    for (int tile = 0; tile < 2; ++tile)
      for (int m = 0; m < M; ++m)
        _mm512_storeu_ps(a.acc + ((p + i) * round_rows(a.M) + first + m) * kPanel + tile * 16,
                         acc[i][tile][m]);
}

}  // namespace

void bf16_matmul_panels(const Bf16Args& a) {
  int p = 0;
  for (; a.M == 1 && p + 4 <= a.panels.count; p += 4) rows<1, 4>(a, p, 0);
  for (; p < a.panels.count; ++p) {
    int m = 0;
    for (; m + 8 <= a.M; m += 8) rows<8, 1>(a, p, m);
    for (; m + 4 <= a.M; m += 4) rows<4, 1>(a, p, m);
    for (; m + 2 <= a.M; m += 2) rows<2, 1>(a, p, m);
    for (; m < a.M; ++m) rows<1, 1>(a, p, m);
  }
}

double bf16_flops(std::int64_t rounds, float* sink) {
  constexpr int kChains = 12;
  __m512 acc[kChains];
  for (__m512& v : acc) v = _mm512_set1_ps(1);
  const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3F803F80));
  for (std::int64_t r = 0; r < rounds; ++r)
    for (__m512& v : acc) v = _mm512_dpbf16_ps(v, ones, ones);
  __m512 total = acc[0];
  for (int i = 1; i < kChains; ++i) total = _mm512_add_ps(total, acc[i]);
  *sink = _mm512_reduce_add_ps(total);
  return 2.0 * 32 * kChains * static_cast<double>(rounds);
}

void bf16_convert(std::uint16_t* tiles, const float* x, std::int64_t n, std::int64_t steps,
                  std::int64_t m) {
  for (std::int64_t i = 0; i < steps * kStep; i += 16) {
    std::int64_t left = n - i;
    auto mask = static_cast<__mmask16>(left >= 16 ? 0xFFFF : left > 0 ? (1u << left) - 1 : 0);
    __m512 v = _mm512_maskz_loadu_ps(mask, x + i);
    std::uint16_t* to = tiles + tile_at(m, i / kStep, steps) + i % kStep;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v)));
  }
}

}  // namespace vitrine::cpu
