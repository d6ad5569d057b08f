// Products in integers by AMX, what few and more rows share; see matmul_amx_integers.cpp. It alone
// includes this and amx_integers_{few,tiles}.h, which have internal linkage as if they stood there.
#pragma once

#include "kernels/cpu/amx_levels.h"
#include "kernels/cpu/kernels.h"

namespace vitrine::cpu {
namespace {

using namespace amx;

// What a row's sum over 256 k adds to an output.
template <typename Format>
__m512 scaled(Vb sum, __m512 mins, __m512 unit, __m512 min_unit, float step, __m512 acc) {
  __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), unit);
  if constexpr (Format::kMins) value = _mm512_fnmadd_ps(mins, min_unit, value);
  return _mm512_fmadd_ps(value, _mm512_set1_ps(step), acc);
}
template <typename Format>
__m512 min_unit_of(const std::byte* super, int tile) {
  if constexpr (Format::kMins) return Format::min_unit(super, tile);
  return _mm512_setzero_ps();
}

}  // namespace
}  // namespace vitrine::cpu
