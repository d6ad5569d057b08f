// The vocabulary of integer dot products: vectors of bytes, and sums of products of quads.
//
// dot_unsigned(run, w, x) adds the products of unsigned w with signed x to a run; add_products()
// ends a run. With VNNI a run is the sum itself; without, it is in 16 bits, and the caller knows
// how many products fit.
#pragma once

#include "kernels/cpu/isa/simd.h"

namespace vitrine::cpu::VT_ISA {

#if defined(__AVX512F__)

using Vb = __m512i;
inline Vb load_bytes(const void* p) { return _mm512_loadu_si512(p); }
inline Vb bytes(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
inline Vb words(int x) { return _mm512_set1_epi16(static_cast<short>(x)); }
inline Vb integers(int x) { return _mm512_set1_epi32(x); }
inline Vb and_(Vb a, Vb b) { return _mm512_and_si512(a, b); }
inline Vb or_(Vb a, Vb b) { return _mm512_or_si512(a, b); }
inline Vb shift_right(Vb a, int n) { return _mm512_srl_epi16(a, _mm_cvtsi32_si128(n)); }
inline Vb shift_left(Vb a, int n) { return _mm512_sll_epi16(a, _mm_cvtsi32_si128(n)); }
inline Vf to_float(Vb a) { return {_mm512_cvtepi32_ps(a)}; }
inline void store_i8(std::int8_t* to, Vf a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a.v)));
}

#else

using Vb = __m256i;
inline Vb load_bytes(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline Vb bytes(int x) { return _mm256_set1_epi8(static_cast<char>(x)); }
inline Vb words(int x) { return _mm256_set1_epi16(static_cast<short>(x)); }
inline Vb integers(int x) { return _mm256_set1_epi32(x); }
inline Vb and_(Vb a, Vb b) { return _mm256_and_si256(a, b); }
inline Vb or_(Vb a, Vb b) { return _mm256_or_si256(a, b); }
inline Vb shift_right(Vb a, int n) { return _mm256_srl_epi16(a, _mm_cvtsi32_si128(n)); }
inline Vb shift_left(Vb a, int n) { return _mm256_sll_epi16(a, _mm_cvtsi32_si128(n)); }
inline Vf to_float(Vb a) { return {_mm256_cvtepi32_ps(a)}; }
inline void store_i8(std::int8_t* to, Vf a) {
  __m256i wide = _mm256_cvtps_epi32(a.v);
  __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi16(words, words));
}

#endif

// Four bytes of a row in every lane.
inline Vb quad(const std::int8_t* x) {
  int all;
  __builtin_memcpy(&all, x, 4);
  return integers(all);
}

inline Vb no_products() { return integers(0); }

#if defined(__AVX512VNNI__)

// Signed bytes become unsigned by adding 128, which is then taken off the sum.
inline constexpr int kSignedBias = 128;
inline Vb load_signed(const void* p) { return _mm512_xor_si512(load_bytes(p), bytes(0x80)); }
inline Vb dot_unsigned(Vb run, Vb w, Vb x) { return _mm512_dpbusd_epi32(run, w, x); }
inline Vb dot_signed(Vb run, Vb w, Vb x) { return dot_unsigned(run, w, x); }
inline Vb add_products(Vb sum, Vb run) { return _mm512_add_epi32(sum, run); }

#elif defined(__AVX512F__)

inline constexpr int kSignedBias = 0;
inline Vb load_signed(const void* p) { return load_bytes(p); }
inline Vb dot_unsigned(Vb run, Vb w, Vb x) {
  return _mm512_add_epi16(run, _mm512_maddubs_epi16(w, x));
}
// |w| and x with the sign of w: two products stay within 16 bits.
inline Vb dot_signed(Vb run, Vb w, Vb x) {
  Vb signed_x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), integers(0), x);
  return dot_unsigned(run, _mm512_abs_epi8(w), signed_x);
}
inline Vb add_products(Vb sum, Vb run) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(run, words(1)));
}

#else

inline constexpr int kSignedBias = 0;
inline Vb load_signed(const void* p) { return load_bytes(p); }
inline Vb dot_unsigned(Vb run, Vb w, Vb x) {
  return _mm256_add_epi16(run, _mm256_maddubs_epi16(w, x));
}
inline Vb dot_signed(Vb run, Vb w, Vb x) {
  return dot_unsigned(run, _mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}
inline Vb add_products(Vb sum, Vb run) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(run, words(1)));
}

#endif

}  // namespace vitrine::cpu::VT_ISA
