// Activations in 12 bits for the products of matmul_amx_integers.cpp.
#define VT_ISA amx

#include <algorithm>
#include <bit>

#include "kernels/cpu/amx_levels.h"
#include "kernels/cpu/kernels.h"

namespace vitrine::cpu {
namespace {

// No activation is more steps than this: the high part stays within 127.
constexpr float kMostSteps = 2031;

}  // namespace

using namespace amx;

// A NaN or an infinity among 256 makes their step NaN, and so the outputs.
void amx_prepare_integers(const IntegerRows& rows, const float* x, std::int64_t m) {
  const bool few = rows.M <= kIntegerFewRows;
  const IntegerForm& form = rows.form;
  const __m128i low_shift = _mm_cvtsi32_si128(log2_of(form.low));
  for (std::int64_t s = 0; s < rows.steps; s += kSuper, x += kSuperK) {
    const std::int64_t super = s / kSuper, block = super * (round_rows(rows.M) / 16) + m / 16;
    const int steps = static_cast<int>(std::min<std::int64_t>(rows.steps - s, kSuper));
    __m512 top = _mm512_setzero_ps(), check = _mm512_setzero_ps();
    for (int k = 0; k < steps * kStep; k += 16) {
      const __m512 v = _mm512_loadu_ps(x + k);
      top = _mm512_max_ps(top, _mm512_abs_ps(v));
      check = _mm512_fmadd_ps(v, _mm512_setzero_ps(), check);  // NaN where v is NaN or infinite
    }
    const float most = _mm512_reduce_max_ps(top);
    const bool bad = _mm512_reduce_add_ps(check) != 0;
    // Below the smallest normal number the inverse overflows; such a block counts as zero.
    const bool none = bad || most < 1e-30f;
    const float step = bad ? __builtin_nanf("") : none ? 0 : most / kMostSteps;
    rows.step[super * round_rows(rows.M) + m] = step;
    const __m512 inverse = _mm512_set1_ps(none ? 0 : kMostSteps / most);
    std::uint32_t pairs[16] = {}, quads[16] = {};  // sums of the steps, as tiles have them
    for (int i = 0; i < (few ? steps : kSuper); ++i) {
      const std::int64_t at = (s + i) * rows.M + m;
      std::int8_t* to =
          few ? rows.q + at * 2 * kStep
              : rows.q + (block * kChunks + i / 2) * 2 * kTileBytes + m % 16 * 64 + i % 2 * kStep;
      __m512i v[2], high[2], low[2];
      for (int half = 0; half < 2; ++half) {
        v[half] = _mm512_setzero_si512();
        if (i < steps && !none)
          v[half] = _mm512_cvtps_epi32(
              _mm512_mul_ps(_mm512_loadu_ps(x + i * kStep + half * 16), inverse));
        // Ties to even: the low parts must not lean to one side.
        const __m512i odd = and_(_mm512_srli_epi32(v[half], 4), integers(1));
        high[half] =
            _mm512_srai_epi32(_mm512_add_epi32(_mm512_add_epi32(v[half], integers(7)), odd), 4);
        low[half] = _mm512_sll_epi32(_mm512_sub_epi32(v[half], _mm512_slli_epi32(high[half], 4)),
                                     low_shift);
        auto put = [](std::int8_t* sixteen, __m512i values) {
          _mm_store_si128(reinterpret_cast<__m128i*>(sixteen),
                          quad_order(_mm512_cvtepi32_epi8(values)));
        };
        put(to + half * 16, high[half]);
        put(to + half * 16 + (few ? kStep : kTileBytes), low[half]);
      }
      if (few && form.bias != 0) {
        auto start = [&](__m512i values) { return -form.bias * _mm512_reduce_add_epi32(values); };
        std::int32_t* starts = rows.starts + at * 4;
        if (form.groups == 1) {
          starts[0] = start(_mm512_add_epi32(high[0], high[1]));
          starts[2] = start(_mm512_add_epi32(low[0], low[1]));
        } else {
          starts[0] = start(high[0]), starts[1] = start(high[1]);
          starts[2] = start(low[0]), starts[3] = start(low[1]);
        }
      } else if (form.bias == 0) {
        const int sum = _mm512_reduce_add_epi32(_mm512_add_epi32(v[0], v[1]));
        const __m512i lows = _mm512_add_epi32(low[0], low[1]);
        if (few) {
          rows.starts[at * 4] = sum;
          rows.starts[at * 4 + 1] = _mm512_reduce_add_epi32(lows) * 65536;
        }
        // Four sums of eight low parts.
        __m128i fours = _mm512_cvtepi32_epi8(lows);
        fours = _mm_add_epi8(fours, _mm_srli_si128(fours, 8));
        fours = _mm_add_epi8(fours, _mm_srli_si128(fours, 4));
        quads[i] = static_cast<std::uint32_t>(_mm_cvtsi128_si32(fours));
        // A multiple of 256 and the rest, each a bf16.
        const int rest = static_cast<std::int8_t>(sum);
        pairs[i] = std::bit_cast<std::uint32_t>(static_cast<float>(sum - rest)) >> 16 |
                   (std::bit_cast<std::uint32_t>(static_cast<float>(rest)) & 0xFFFF0000);
      }
    }
    if (few || form.bias != 0) continue;
    _mm512_store_si512(rows.sum_tiles + block * kTileWords + m % 16 * 32,
                       _mm512_loadu_si512(pairs));
    _mm512_store_si512(rows.low_tiles + block * kTileBytes + m % 16 * 64,
                       _mm512_loadu_si512(quads));
  }
}

}  // namespace vitrine::cpu
