// q8_0 products on AVX-512 VNNI: activations as 16-bit integers with a scale per 32, in two int8
// halves.
//
// Arithmetic at every M: per group of 32 k an exact int32 dot product, then
// acc = fma(float(dot), scale_x * scale_w, acc), groups in ascending order. Sixteen bits rather
// than eight cost a second VPDPBUSD per weight and bring the error down to that of fp32 products;
// where memory is the bound they cost nothing. VPDPBUSD wants its first operand unsigned: the
// weights are shifted by 128, and the dot product starts at -128 * sum(x). |256 * dot(high)| stays
// below 2^28. Work: a tile of 6 rows x 32 outputs in registers over the panel.
#include <immintrin.h>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/packed.h"

namespace vitrine::cpu {
namespace {

__m512i broadcast4(const std::int8_t* p) {
  int quad;
  __builtin_memcpy(&quad, p, 4);
  return _mm512_set1_epi32(quad);
}

template <int M>
void rows(const VnniArgs& a, int first) {
  __m512 acc[M][2];
  for (auto& row : acc) row[0] = row[1] = _mm512_setzero_ps();
  const __m512i shift = _mm512_set1_epi8(static_cast<char>(0x80));
  for (std::int64_t s = 0; s < a.steps; ++s) {
    const std::byte* step = a.panel + kStepsQ8.at(s);
    for (int tile = 0; tile < 2; ++tile) {
      __m512i high[M], low[M];
      for (int m = 0; m < M; ++m) {
        high[m] = _mm512_setzero_si512();
        low[m] = _mm512_set1_epi32(a.rows.start[(first + m) * a.steps + s]);
      }
      const std::byte* quads = step + kHead + tile * (kPanel * kStep / 2);
      for (int i = 0; i < 8; ++i) {
        _mm_prefetch(reinterpret_cast<const char*>(quads + i * 64 + 2 * kStepsQ8.step),
                     _MM_HINT_T0);
        __m512i w = _mm512_xor_si512(_mm512_loadu_si512(quads + i * 64), shift);
        for (int m = 0; m < M; ++m) {
          std::int64_t at = ((first + m) * a.steps + s) * kStep + 4 * i;
          high[m] = _mm512_dpbusd_epi32(high[m], w, broadcast4(a.rows.high + at));
          low[m] = _mm512_dpbusd_epi32(low[m], w, broadcast4(a.rows.low + at));
        }
      }
      __m512 d =
          _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(step + tile * 32)));
      for (int m = 0; m < M; ++m) {
        __m512 dot = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high[m], 8), low[m]));
        __m512 scale = _mm512_mul_ps(_mm512_set1_ps(a.rows.scale[(first + m) * a.steps + s]), d);
        acc[m][tile] = _mm512_fmadd_ps(dot, scale, acc[m][tile]);
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
  for (; m + 6 <= a.M; m += 6) rows<6>(a, m);
  for (; m + 3 <= a.M; m += 3) rows<3>(a, m);
  for (; m < a.M; ++m) rows<1>(a, m);
}

// A NaN or an infinity among the 32 makes the scale NaN or infinite, and so the outputs.
void vnni_quantize(const float* x, std::int64_t steps, std::int64_t row, const VnniRows& out) {
  constexpr float kTop = 127 * 256;
  const __m512i round = _mm512_set1_epi32(128);
  for (std::int64_t s = 0; s < steps; ++s) {
    __m512 v[2] = {_mm512_loadu_ps(x + s * kStep), _mm512_loadu_ps(x + s * kStep + 16)};
    float top = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(v[0]), _mm512_abs_ps(v[1])));
    __mmask16 nan =
        _mm512_cmp_ps_mask(v[0], v[0], _CMP_UNORD_Q) | _mm512_cmp_ps_mask(v[1], v[1], _CMP_UNORD_Q);
    // Below the smallest normal number the inverse overflows; such a group counts as zero.
    bool tiny = top < 1e-30f;
    out.scale[row * steps + s] = nan ? __builtin_nanf("") : tiny ? 0 : top / kTop;
    __m512 inverse = _mm512_set1_ps(tiny ? 0 : kTop / top);
    __m512i sum = _mm512_setzero_si512();
    for (int half = 0; half < 2; ++half) {
      __m512i q = _mm512_cvtps_epi32(_mm512_mul_ps(v[half], inverse));
      __m512i high = _mm512_srai_epi32(_mm512_add_epi32(q, round), 8);
      __m512i low = _mm512_sub_epi32(q, _mm512_slli_epi32(high, 8));
      std::int64_t at = (row * steps + s) * kStep + 16 * half;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out.high + at), _mm512_cvtepi32_epi8(high));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out.low + at), _mm512_cvtepi32_epi8(low));
      sum = _mm512_add_epi32(sum, q);
    }
    out.start[row * steps + s] =
        static_cast<std::int32_t>(-128 * static_cast<std::int64_t>(_mm512_reduce_add_epi32(sum)));
  }
}

}  // namespace vitrine::cpu
