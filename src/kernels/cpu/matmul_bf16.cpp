// bf16 products on AVX-512: activations and weights in bf16, accumulated in fp32 by VDPBF16PS.
//
// Arithmetic at every M: pairs of k in ascending order, one accumulator per output. (Not the bits
// of TDPBF16PS.) Work: a tile of 8 rows x 32 outputs in registers over the panel, read once per 8
// rows.
#include <immintrin.h>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/packed.h"

namespace vitrine::cpu {
namespace {

template <int M>
void rows(const Bf16Args& a, int p, int first) {
  __m512 acc[M][2];
  for (auto& row : acc) row[0] = row[1] = _mm512_setzero_ps();
  const std::uint16_t* x = a.x + tile_at(first, 0, a.steps);
  for (std::int64_t s = 0; s < a.steps; ++s) {
    const std::byte* w = a.panels.at(p) + s * kStep16Bytes;
    for (int pair = 0; pair < 16; ++pair) {
      const std::byte* at = w + pair * 64;
      _mm_prefetch(reinterpret_cast<const char*>(at + kStep16Bytes), _MM_HINT_T0);
      auto w0 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(at));
      auto w1 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(at + kStep16Bytes / 2));
      for (int m = 0; m < M; ++m) {
        int words;
        __builtin_memcpy(&words, x + s * kTileWords + m * kStep + 2 * pair, 4);
        auto both = reinterpret_cast<__m512bh>(_mm512_set1_epi32(words));
        acc[m][0] = _mm512_dpbf16_ps(acc[m][0], both, w0);
        acc[m][1] = _mm512_dpbf16_ps(acc[m][1], both, w1);
      }
    }
  }
  for (int m = 0; m < M; ++m) {
    float* to = a.acc + (p * round_rows(a.M) + first + m) * kPanel;
    _mm512_storeu_ps(to, acc[m][0]);
    _mm512_storeu_ps(to + 16, acc[m][1]);
  }
}

}  // namespace

void bf16_matmul_panels(const Bf16Args& a) {
  for (int p = 0; p < a.panels.count; ++p) {
    int m = 0;
    for (; m + 8 <= a.M; m += 8) rows<8>(a, p, m);
    for (; m + 4 <= a.M; m += 4) rows<4>(a, p, m);
    for (; m < a.M; ++m) rows<1>(a, p, m);
  }
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
