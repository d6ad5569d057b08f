// The vector vocabulary of the kernels: one width per instruction set. Lane results are the same
// for both (IEEE operations in the same order), reductions are not.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace vitrine::cpu::VT_ISA {

#if defined(__AVX512F__)

struct Vf {
  static constexpr int kWidth = 16;
  __m512 v;
};
inline Vf zero() { return {_mm512_setzero_ps()}; }
inline Vf set1(float x) { return {_mm512_set1_ps(x)}; }
inline Vf load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, Vf a) { _mm512_storeu_ps(p, a.v); }
inline Vf add(Vf a, Vf b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Vf sub(Vf a, Vf b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Vf mul(Vf a, Vf b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Vf div(Vf a, Vf b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Vf fma(Vf a, Vf b, Vf c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Vf max(Vf a, Vf b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Vf min(Vf a, Vf b) { return {_mm512_min_ps(a.v, b.v)}; }
inline Vf abs(Vf a) { return {_mm512_abs_ps(a.v)}; }
inline Vf round(Vf a) { return {_mm512_roundscale_ps(a.v, 8)}; }
inline Vf negative(Vf sign, Vf a) {  // a with its sign flipped where sign < 0
  return {_mm512_xor_ps(a.v, _mm512_and_ps(sign.v, _mm512_set1_ps(-0.0f)))};
}
inline Vf zero_below(Vf x, Vf limit, Vf a) {  // 0 where x < limit, else a; so a NaN stays
  return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x.v, limit.v, _CMP_NLT_UQ), a.v)};
}
inline Vf pow2(Vf n) {  // 2^n for whole n in the range of normal floats
  return {_mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127)), 23))};
}
inline float reduce_add(Vf a) { return _mm512_reduce_add_ps(a.v); }
inline float reduce_max(Vf a) { return _mm512_reduce_max_ps(a.v); }
inline Vf load_f16(const void* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
inline Vf load_bf16(const void* p) {
  __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
// Lanes of two 16-bit elements: the low ones and the high ones.
inline void load_bf16_pairs(const void* p, Vf& low, Vf& high) {
  __m512i v = _mm512_loadu_si512(p);
  low = {_mm512_castsi512_ps(_mm512_slli_epi32(v, 16))};
  high = {
      _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(static_cast<int>(0xFFFF0000))))};
}
inline void load_f16_pairs(const void* p, Vf& low, Vf& high) {
  __m512i v = _mm512_loadu_si512(p);
  low = {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(v))};
  high = {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(v, 16)))};
}
inline Vf load_u8(const void* p) {
  return {
      _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p))))};
}
inline Vf load_i8(const void* p) {
  return {
      _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p))))};
}

#else

struct Vf {
  static constexpr int kWidth = 8;
  __m256 v;
};
inline Vf zero() { return {_mm256_setzero_ps()}; }
inline Vf set1(float x) { return {_mm256_set1_ps(x)}; }
inline Vf load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline void store(float* p, Vf a) { _mm256_storeu_ps(p, a.v); }
inline Vf add(Vf a, Vf b) { return {_mm256_add_ps(a.v, b.v)}; }
inline Vf sub(Vf a, Vf b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline Vf mul(Vf a, Vf b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline Vf div(Vf a, Vf b) { return {_mm256_div_ps(a.v, b.v)}; }
inline Vf fma(Vf a, Vf b, Vf c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline Vf max(Vf a, Vf b) { return {_mm256_max_ps(a.v, b.v)}; }
inline Vf min(Vf a, Vf b) { return {_mm256_min_ps(a.v, b.v)}; }
inline Vf abs(Vf a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
inline Vf round(Vf a) {
  return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline Vf negative(Vf sign, Vf a) {
  return {_mm256_xor_ps(a.v, _mm256_and_ps(sign.v, _mm256_set1_ps(-0.0f)))};
}
inline Vf zero_below(Vf x, Vf limit, Vf a) {
  return {_mm256_and_ps(a.v, _mm256_cmp_ps(x.v, limit.v, _CMP_NLT_UQ))};
}
inline Vf pow2(Vf n) {
  return {_mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127)), 23))};
}
inline float reduce_add(Vf a) {
  __m128 x = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
}
inline float reduce_max(Vf a) {
  __m128 x = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  x = _mm_max_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
}
inline Vf load_f16(const void* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)))};
}
inline Vf load_bf16(const void* p) {
  __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
}
inline void load_bf16_pairs(const void* p, Vf& low, Vf& high) {
  __m256i v = _mm256_loadu_si256(static_cast<const __m256i*>(p));
  low = {_mm256_castsi256_ps(_mm256_slli_epi32(v, 16))};
  high = {
      _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32(static_cast<int>(0xFFFF0000))))};
}
inline void load_f16_pairs(const void* p, Vf& low, Vf& high) {
  __m256i v = _mm256_loadu_si256(static_cast<const __m256i*>(p));
  __m256i mask = _mm256_set1_epi32(0xFFFF);
  // Packing works within 128-bit halves; the permutation puts the quarters in order.
  __m256i packed = _mm256_permute4x64_epi64(
      _mm256_packus_epi32(_mm256_and_si256(v, mask), _mm256_srli_epi32(v, 16)), 0xD8);
  low = {_mm256_cvtph_ps(_mm256_castsi256_si128(packed))};
  high = {_mm256_cvtph_ps(_mm256_extracti128_si256(packed, 1))};
}
inline Vf load_u8(const void* p) {
  return {
      _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p))))};
}
inline Vf load_i8(const void* p) {
  return {
      _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p))))};
}

#endif

// e^x to about one unit in the last place; exactly 0 below -87.3, and for -inf.
inline Vf exp(Vf x) {
  // (min and max return their second operand for a NaN, which must go through.)
  Vf limited = min(set1(88.3f), max(set1(-87.3f), x));
  Vf n = round(mul(limited, set1(1.44269504088896341f)));
  // x - n ln 2 in two parts: the first product is exact.
  Vf r = fma(n, set1(-0.693359375f), limited);
  r = fma(n, set1(2.12194440e-4f), r);
  Vf p = set1(1.9875691500e-4f);
  p = fma(p, r, set1(1.3981999507e-3f));
  p = fma(p, r, set1(8.3334519073e-3f));
  p = fma(p, r, set1(4.1665795894e-2f));
  p = fma(p, r, set1(1.6666665459e-1f));
  p = fma(p, r, set1(5.0000001201e-1f));
  p = add(fma(mul(r, r), p, r), set1(1));
  return zero_below(x, set1(-87.3f), mul(p, pow2(n)));
}

// |error| below 3e-7.
inline Vf tanh(Vf x) {
  Vf e = exp(mul(set1(2), min(set1(20), abs(x))));
  return negative(x, sub(set1(1), div(set1(2), add(e, set1(1)))));
}

// Abramowitz and Stegun 7.1.26, |error| below 2e-7.
inline Vf erf(Vf x) {
  Vf a = abs(x);
  Vf t = div(set1(1), fma(set1(0.3275911f), a, set1(1)));
  Vf p = set1(1.061405429f);
  p = fma(p, t, set1(-1.453152027f));
  p = fma(p, t, set1(1.421413741f));
  p = fma(p, t, set1(-0.284496736f));
  p = fma(p, t, set1(0.254829592f));
  Vf e = exp(negative(set1(-1), mul(a, a)));
  return negative(x, sub(set1(1), mul(mul(p, t), e)));
}

}  // namespace vitrine::cpu::VT_ISA
