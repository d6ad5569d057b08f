// q8_0 products on AVX-512 VNNI: activations as int8 with a scale per 32, like the weights.
//
// Arithmetic at every M: per group of 32 k an exact int32 dot product, then
// acc = fma(float(dot), scale_x * scale_w, acc), groups in ascending order. VPDPBUSD wants its
// first operand unsigned: the weights are shifted by 128, and the dot product starts at -128 *
// sum(x). Work: a tile of 8 rows x 32 outputs in registers over the panel.
#include <immintrin.h>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/packed.h"

namespace vitrine::cpu {
namespace {

template <int M>
void rows(const VnniArgs& a, int first) {
  __m512 acc[M][2];
  for (auto& row : acc) row[0] = row[1] = _mm512_setzero_ps();
  const __m512i shift = _mm512_set1_epi8(static_cast<char>(0x80));
  for (std::int64_t s = 0; s < a.steps; ++s) {
    const std::byte* step = a.panel + s * kStepQ8Bytes;
    for (int tile = 0; tile < 2; ++tile) {
      __m512i dot[M];
      for (int m = 0; m < M; ++m) dot[m] = _mm512_set1_epi32(a.start[(first + m) * a.steps + s]);
      const std::byte* quads = step + kPanel * 2 + tile * (kPanel * kStep / 2);
      for (int i = 0; i < 8; ++i) {
        _mm_prefetch(reinterpret_cast<const char*>(quads + i * 64 + 2 * kStepQ8Bytes), _MM_HINT_T0);
        __m512i w = _mm512_xor_si512(_mm512_loadu_si512(quads + i * 64), shift);
        for (int m = 0; m < M; ++m) {
          int quad;
          __builtin_memcpy(&quad, a.x + ((first + m) * a.steps + s) * kStep + 4 * i, 4);
          dot[m] = _mm512_dpbusd_epi32(dot[m], w, _mm512_set1_epi32(quad));
        }
      }
      __m512 d =
          _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(step + tile * 32)));
      for (int m = 0; m < M; ++m) {
        __m512 scale = _mm512_mul_ps(_mm512_set1_ps(a.scale[(first + m) * a.steps + s]), d);
        acc[m][tile] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[m]), scale, acc[m][tile]);
      }
    }
  }
  for (int m = 0; m < M; ++m) {
    float* to = a.acc + (first + m) * kPanel;
    _mm512_storeu_ps(to, acc[m][0]);
    _mm512_storeu_ps(to + 16, acc[m][1]);
  }
}

}  // namespace

void vnni_matmul_panel(const VnniArgs& a) {
  int m = 0;
  for (; m + 8 <= a.M; m += 8) rows<8>(a, m);
  for (; m + 4 <= a.M; m += 4) rows<4>(a, m);
  for (; m < a.M; ++m) rows<1>(a, m);
}

// A NaN or an infinity among the 32 makes the scale NaN or infinite, and so the outputs.
void vnni_quantize(const float* x, std::int64_t steps, std::int8_t* out, float* scale,
                   std::int32_t* start) {
  for (std::int64_t s = 0; s < steps; ++s) {
    __m512 a = _mm512_loadu_ps(x + s * kStep), b = _mm512_loadu_ps(x + s * kStep + 16);
    float top = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(a), _mm512_abs_ps(b)));
    __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q) | _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q);
    scale[s] = nan ? __builtin_nanf("") : top / 127;
    __m512 inverse = _mm512_set1_ps(top > 0 ? 127 / top : 0);
    __m512i qa = _mm512_cvtps_epi32(_mm512_mul_ps(a, inverse));
    __m512i qb = _mm512_cvtps_epi32(_mm512_mul_ps(b, inverse));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + s * kStep), _mm512_cvtsepi32_epi8(qa));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + s * kStep + 16), _mm512_cvtsepi32_epi8(qb));
    start[s] = -128 * _mm512_reduce_add_epi32(_mm512_add_epi32(qa, qb));
  }
}

}  // namespace vitrine::cpu
