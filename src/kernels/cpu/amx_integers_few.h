// Few rows in integers: straight from P panels at once, as so many streams from memory.
#pragma once

#include <algorithm>

#include "kernels/cpu/ahead.h"
#include "kernels/cpu/amx_integers.h"

namespace vitrine::cpu {
namespace {

// Sums of one panel over 256 k: [row][tile].
template <int M>
struct Sums {
  Vb products[M][2], mins[M][2];
};

template <typename Format, int M>
inline __attribute__((always_inline)) void add_step(const IntegerRows& rows, std::int64_t s,
                                                    const std::byte* super, const std::byte* step,
                                                    Sums<M>& to, Near& ahead) {
  constexpr int kGroups = Format::kGroups, kGroupQuads = kQuads / kGroups;
  constexpr int kLines = Format::kSteps.step / 64;
  ahead.fetch(kLines - kLines / 2 * 2);
  for (int tile = 0; tile < 2; ++tile) {
    Vb q[kQuads];
    Format::quads(step, tile, q);
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      const Vb scale = Format::scale(super, step, tile, g), coarse = Format::coarse(scale);
      const Vb fine = _mm512_slli_epi32(scale, log2_of(Format::kFine));
      // What sums with low parts meet and, in the upper halves, sums of low parts.
      Vb words = and_(coarse, integers(0xFFFF));
      if constexpr (Format::kMins)
        words = or_(coarse, _mm512_slli_epi32(Format::left_out(scale), 16));
      ahead.fetch(kLines / 2 / kGroups);
      for (int m = 0; m < M; ++m) {
        const std::int64_t at = s * M + m;
        const std::int8_t *high = rows.q + at * 2 * kStep + g * kGroupQuads * 4,
                          *low = high + kStep;
        const std::int32_t* starts = rows.starts + at * 4;
        Vb highs = integers(Format::kBias == 0 ? 0 : starts[g]);
        Vb lows = integers(Format::kBias == 0 ? 0 : starts[2 + g]);
#pragma GCC unroll 8
        for (int i = 0; i < kGroupQuads; ++i) {
          highs = dot_unsigned(highs, q[g * kGroupQuads + i], quad(high + 4 * i));
          lows = dot_unsigned(lows, q[g * kGroupQuads + i], quad(low + 4 * i));
        }
        Vb& sum = to.products[m][tile];
        sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(highs, fine));
        if constexpr (Format::kMins)
          lows = _mm512_ternarylogic_epi32(integers(0xFFFF), lows, integers(starts[1]), 0xCA);
        sum = _mm512_dpwssd_epi32(sum, lows, words);  // 16 bits hold it
        if constexpr (Format::kMins)
          to.mins[m][tile] = _mm512_add_epi32(
              to.mins[m][tile], _mm512_mullo_epi32(Format::min(step, tile), integers(starts[0])));
      }
    }
  }
}

template <typename Format, int M, int P>
void few_rows(const IntegerArgs& a, int first) {
  constexpr int kAheadBytes = 4096 / P;
  const std::int64_t steps = a.rows.steps;
  const std::byte* panels[P];
  for (int p = 0; p < P; ++p) panels[p] = a.panels.at(first + p);
  __m512 acc[P][M][2];
  for (auto& panel : acc)
    for (auto& row : panel) row[0] = row[1] = _mm512_setzero_ps();
  for (std::int64_t s = 0; s < steps; s += kSuper) {
    Sums<M> sums[P];
    for (auto& panel : sums)
      for (int m = 0; m < M; ++m)
        for (int tile = 0; tile < 2; ++tile)
          panel.products[m][tile] = panel.mins[m][tile] = integers(0);
    const std::int64_t end = std::min(steps, s + kSuper);
    for (std::int64_t i = s; i < end; ++i)
      for (int p = 0; p < P; ++p) {
        const std::byte *panel = panels[p], *step = panel + Format::kSteps.at(i);
        Near ahead{step + kAheadBytes};
        add_step<Format, M>(a.rows, i, panel + Format::kSteps.super_at(i), step, sums[p], ahead);
      }
    for (int p = 0; p < P; ++p)
      for (int tile = 0; tile < 2; ++tile) {
        const std::byte* super = panels[p] + Format::kSteps.super_at(s);
        const __m512 unit = Format::unit(super, tile), min_unit = min_unit_of<Format>(super, tile);
        for (int m = 0; m < M; ++m)
          acc[p][m][tile] = scaled<Format>(
              sums[p].products[m][tile], _mm512_cvtepi32_ps(sums[p].mins[m][tile]), unit, min_unit,
              a.rows.step[s / kSuper * round_rows(M) + m], acc[p][m][tile]);
      }
  }
  for (int p = 0; p < P; ++p)
    for (int m = 0; m < M; ++m)
      for (int tile = 0; tile < 2; ++tile)
        _mm512_storeu_ps(a.acc + ((first + p) * round_rows(M) + m) * kPanel + tile * 16,
                         acc[p][m][tile]);
}

template <typename Format, int M>
void few_rows(const IntegerArgs& a) {
  constexpr int P = M == 1 ? 4 : 1;
  int p = 0;
  for (; p + P <= a.panels.count; p += P) few_rows<Format, M, P>(a, p);
  for (; p < a.panels.count; ++p) few_rows<Format, M, 1>(a, p);
}

}  // namespace
}  // namespace vitrine::cpu
