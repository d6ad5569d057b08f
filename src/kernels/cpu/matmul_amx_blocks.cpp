// AMX: panels of four and five bits (q4_0, q4_k, q5_k) against M rows of bf16 activations.
//
// One row of these is bound by instructions as much as by memory, so weights are not rounded to
// bf16 one by one as matmul_amx.cpp does it: levels are small integers, exact in bf16, and a scale
// is applied once to a group. Arithmetic at every M, per output and group of 32 k, groups in
// ascending order:
//   dot = even + odd;  even, odd: chains of fma from 0 over the even and the odd k, ascending
//   acc = fma(dot, scale, acc), then acc = fma(sum of the activations, offset, acc) where the
//   format has an offset
// which is what TDPBF16PS computes for a tile that starts at zero. Few rows therefore use fp32
// multiply-adds, and nothing has to pass through a tile; more rows unpack the levels of 256 k to
// bf16 tiles in the first-level cache and scale the products of each group in AVX-512. Subnormal
// numbers count as zero, as TDPBF16PS has it.
#define VT_ISA amx

#include <algorithm>

#include "kernels/cpu/ahead.h"
#include "kernels/cpu/amx_tiles.h"
#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/packed.h"

namespace vitrine::cpu {
namespace {

using amx::load_f16, amx::load_u8;

constexpr int kFewRows = 3;     // up to which fp32 multiply-adds are used
constexpr int kDepth = kSuper;  // steps that are unpacked at a time
static_assert(kAmxBlockSteps % kDepth == 0);

struct FlushSubnormals {
  FlushSubnormals() : before(_mm_getcsr()) { _mm_setcsr(before | 0x8040); }
  ~FlushSubnormals() { _mm_setcsr(before); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;
  unsigned before;
};

__m512i load_line(const std::byte* p) { return _mm512_load_si512(p); }

// What a group multiplies: the dot product by `scale`, the sum of its activations by `offset`.
struct Scales {
  __m512 scale, offset;
};

// A format: pairs() gives pairs 4j..4j+3 of k of a tile as bf16 words [16 outputs][2 k], floats()
// the same as floats.

// 32 words of bf16: first, first + 1, ...
__m512i integers(int first, int period) {
  alignas(64) std::uint16_t table[32];
  for (int i = 0; i < 32; ++i) {
    float value = static_cast<float>(first + i % period);
    std::uint32_t bits;
    __builtin_memcpy(&bits, &value, 4);
    table[i] = static_cast<std::uint16_t>(bits >> 16);
  }
  return _mm512_load_si512(table);
}

// Nibbles by a table of which the fifth bit of the index is ignored.
template <int kFirst>
void nibble_pairs(const std::byte* step, int tile, int j, __m512i r[4]) {
  const __m512i table = integers(kFirst, 16);
  __m512i v = load_line(step + kHead + tile * kNibbleTile + j * 64);
  for (int i = 0; i < 4; ++i)
    r[i] = _mm512_permutexvar_epi16(_mm512_srli_epi16(v, static_cast<unsigned>(4 * i)), table);
}

template <int kFirst>
void nibble_floats(const std::byte* step, int tile, int j, __m512 even[4], __m512 odd[4]) {
  alignas(64) float values[16];
  for (int i = 0; i < 16; ++i) values[i] = static_cast<float>(kFirst + i);
  const __m512 table = _mm512_load_ps(values);
  __m512i v = load_line(step + kHead + tile * kNibbleTile + j * 64);
  for (int i = 0; i < 4; ++i) {
    even[i] = _mm512_permutexvar_ps(_mm512_srli_epi32(v, static_cast<unsigned>(4 * i)), table);
    odd[i] = _mm512_permutexvar_ps(_mm512_srli_epi32(v, static_cast<unsigned>(16 + 4 * i)), table);
  }
}

// The words of r as floats, for the formats whose pairs() is the cheapest way.
template <typename Format>
void split_pairs(const std::byte* step, int tile, int j, __m512 even[4], __m512 odd[4]) {
  __m512i r[4];
  Format::pairs(step, tile, j, r);
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
  for (int i = 0; i < 4; ++i) {
    even[i] = _mm512_castsi512_ps(_mm512_slli_epi32(r[i], 16));
    odd[i] = _mm512_castsi512_ps(_mm512_and_si512(r[i], high));
  }
}

struct FormatQ4 {
  static constexpr StepLayout kSteps = kStepsQ4;
  static constexpr bool kOffsets = false;
  static void pairs(const std::byte* step, int tile, int j, __m512i r[4]) {
    nibble_pairs<-8>(step, tile, j, r);
  }
  static void floats(const std::byte* step, int tile, int j, __m512 even[4], __m512 odd[4]) {
    nibble_floats<-8>(step, tile, j, even, odd);
  }
  static Scales scales(const std::byte*, const std::byte* step, int tile) {
    return {load_f16(step + tile * 32).v, _mm512_setzero_ps()};
  }
};

Scales scales_with_mins(const std::byte* super, const std::byte* step, int tile) {
  __m512 d = load_f16(super + tile * 32).v, dmin = load_f16(super + kPanel * 2 + tile * 32).v;
  __m512 min = load_u8(step + kPanel + tile * 16).v;
  return {_mm512_mul_ps(d, load_u8(step + tile * 16).v),
          _mm512_sub_ps(_mm512_setzero_ps(), _mm512_mul_ps(dmin, min))};
}

struct FormatQ4K {
  static constexpr StepLayout kSteps = kStepsQ4K;
  static constexpr bool kOffsets = true;
  static void pairs(const std::byte* step, int tile, int j, __m512i r[4]) {
    nibble_pairs<0>(step, tile, j, r);
  }
  static void floats(const std::byte* step, int tile, int j, __m512 even[4], __m512 odd[4]) {
    nibble_floats<0>(step, tile, j, even, odd);
  }
  static Scales scales(const std::byte* super, const std::byte* step, int tile) {
    return scales_with_mins(super, step, tile);
  }
};

// v with the bits of `high` where the mask has ones.
__m512i select(__m512i v, __m512i high, short mask) {
  return _mm512_ternarylogic_epi32(_mm512_set1_epi16(mask), high, v, 0xCA);
}

// Word shift, left when negative.
__m512i shift_words(__m512i v, int right) {
  return right >= 0 ? _mm512_srli_epi16(v, static_cast<unsigned>(right))
                    : _mm512_slli_epi16(v, static_cast<unsigned>(-right));
}

struct FormatQ5K {
  static constexpr StepLayout kSteps = kStepsQ5K;
  static constexpr bool kOffsets = true;
  static void pairs(const std::byte* step, int tile, int j, __m512i r[4]) {
    const __m512i table = integers(0, 32);
    __m512i v = load_line(step + kHead + tile * kNibbleTile + j * 64);
    __m512i fifth = load_line(step + kHead + 2 * kNibbleTile + tile * kFifthTile);
    for (int i = 0; i < 4; ++i)
      r[i] = _mm512_permutexvar_epi16(
          select(shift_words(v, 4 * i), shift_words(fifth, 4 * j + i - 4), 16), table);
  }
  static void floats(const std::byte* step, int tile, int j, __m512 even[4], __m512 odd[4]) {
    split_pairs<FormatQ5K>(step, tile, j, even, odd);
  }
  static Scales scales(const std::byte* super, const std::byte* step, int tile) {
    return scales_with_mins(super, step, tile);
  }
};

template <typename Format>
__m512 scaled(__m512 dot, const Scales& s, float sum, __m512 acc) {
  acc = _mm512_fmadd_ps(dot, s.scale, acc);
  return Format::kOffsets ? _mm512_fmadd_ps(_mm512_set1_ps(sum), s.offset, acc) : acc;
}

// M rows by multiply-adds, straight from P panels at once: as many streams from memory. Lines are
// fetched one at a time between the work: many in a row wait for memory, and the work for them.
template <typename Format, int M, int P>
void few_rows(const BlockArgs& a, int first) {
  constexpr int kLines = Format::kSteps.step / 64, kAheadBytes = 4096 / P;
  const std::int64_t steps = a.rows.tiles.steps;
  __m512 acc[P][M][2];
  for (auto& panel : acc)
    for (auto& row : panel) row[0] = row[1] = _mm512_setzero_ps();
  for (std::int64_t s = 0; s < steps; ++s)
    for (int p = 0; p < P; ++p) {
      const std::byte* super = a.panels.at(first + p) + Format::kSteps.super_at(s);
      const std::byte* step = a.panels.at(first + p) + Format::kSteps.at(s);
      Near ahead{step + kAheadBytes};
      ahead.fetch(kLines - 8);
      for (int tile = 0; tile < 2; ++tile) {
        __m512 even[M], odd[M];
        for (int m = 0; m < M; ++m) even[m] = odd[m] = _mm512_setzero_ps();
        for (int j = 0; j < 4; ++j) {
          ahead.fetch(1);
          __m512 e[4], o[4];
          Format::floats(step, tile, j, e, o);
          for (int m = 0; m < M; ++m) {
            const float* x = a.rows.wide + (m * steps + s) * kStep + 8 * j;
            for (int i = 0; i < 4; ++i) {
              even[m] = _mm512_fmadd_ps(_mm512_set1_ps(x[2 * i]), e[i], even[m]);
              odd[m] = _mm512_fmadd_ps(_mm512_set1_ps(x[2 * i + 1]), o[i], odd[m]);
            }
          }
        }
        Scales scales = Format::scales(super, step, tile);
        for (int m = 0; m < M; ++m)
          acc[p][m][tile] = scaled<Format>(_mm512_add_ps(even[m], odd[m]), scales,
                                           a.rows.sums[s * 16 + m], acc[p][m][tile]);
      }
    }
  for (int p = 0; p < P; ++p)
    for (int m = 0; m < M; ++m)
      for (int tile = 0; tile < 2; ++tile)
        _mm512_storeu_ps(a.acc + ((first + p) * round_rows(M) + m) * kPanel + tile * 16,
                         acc[p][m][tile]);
}

template <typename Format, int M>
void few_rows(const BlockArgs& a) {
  int p = 0;
  for (; p + 4 <= a.panels.count; p += 4) few_rows<Format, M, 4>(a, p);
  for (; p < a.panels.count; ++p) few_rows<Format, M, 1>(a, p);
}

// One tile of 16 outputs over a block of k, ready for the tile unit. Aligned to pages as
// activations and dots are: what is loaded for a step then never has the place in its page that a
// product still on its way to memory has, which the processor would take for the same.
struct Unpacked {
  alignas(4096) std::uint16_t words[kDepth][16][32];  // [step][pair of k][16 outputs][2 k]
  Scales scales[kDepth];
};

template <typename Format>
void unpack(const std::byte* panel, std::int64_t first, int steps, int tile, Unpacked& to) {
  order_tile_loads(&to);
  for (int s = 0; s < steps; ++s) {
    const std::byte* step = panel + Format::kSteps.at(first + s);
    for (int j = 0; j < 4; ++j) {
      __m512i r[4];
      Format::pairs(step, tile, j, r);
      for (int i = 0; i < 4; ++i) _mm512_store_si512(to.words[s][4 * j + i], r[i]);
    }
    to.scales[s] = Format::scales(panel + Format::kSteps.super_at(first + s), step, tile);
  }
  order_tile_loads(&to);
}

// The product of one group (16 rows, 16 outputs) in one of four tiles, and its way to memory. The
// numbers of tiles are literals.
inline __attribute__((always_inline)) void product(int i, const std::uint16_t* x,
                                                   const std::uint16_t* w) {
  switch (i) {
    case 0:
      _tile_zero(0);
      _tile_loadd(4, x, 64);
      _tile_loadd(6, w, 64);
      _tile_dpbf16ps(0, 4, 6);
      return;
    case 1:
      _tile_zero(1);
      _tile_loadd(5, x, 64);
      _tile_loadd(7, w, 64);
      _tile_dpbf16ps(1, 5, 7);
      return;
    case 2:
      _tile_zero(2);
      _tile_loadd(4, x, 64);
      _tile_loadd(6, w, 64);
      _tile_dpbf16ps(2, 4, 6);
      return;
    case 3:
      _tile_zero(3);
      _tile_loadd(5, x, 64);
      _tile_loadd(7, w, 64);
      _tile_dpbf16ps(3, 5, 7);
      return;
  }
}
inline __attribute__((always_inline)) void store_product(int i, float* dots) {
  switch (i) {
    case 0:
      _tile_stored(0, dots, 64);
      return;
    case 1:
      _tile_stored(1, dots, 64);
      return;
    case 2:
      _tile_stored(2, dots, 64);
      return;
    case 3:
      _tile_stored(3, dots, 64);
      return;
  }
}

// 16 rows over the unpacked steps; the tile unit is three groups ahead of the scaling, because a
// product takes three times as long to come out as the unit is busy with it. It is stored when the
// next one has begun.
template <typename Format>
void sixteen_rows(const Unpacked& u, int steps, const std::uint16_t* x, std::int64_t step_words,
                  const float* sums, float* to, bool first) {
  alignas(4096) float dots[4][256];
  __m512 acc[16];
  for (int m = 0; m < 16; ++m)
    acc[m] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(to + m * kPanel);
  auto start = [&](int i, int s) __attribute__((always_inline)) {
    if (s < steps) product(i, x + s * step_words, u.words[s][0]);
    if (s > 0 && s <= steps) store_product((i + 3) % 4, dots[(i + 3) % 4]);
  };
  for (int i = 0; i < 3; ++i) start(i, i);
  for (int s = 0; s < steps; s += 4)
    for (int i = 0; i < 4; ++i) {
      start((i + 3) % 4, s + i + 3);
      if (s + i >= steps) break;
      for (int m = 0; m < 16; ++m)
        acc[m] = scaled<Format>(_mm512_load_ps(dots[i] + m * 16), u.scales[s + i],
                                sums[(s + i) * 16 + m], acc[m]);
    }
  for (int m = 0; m < 16; ++m) _mm512_storeu_ps(to + m * kPanel, acc[m]);
}

// All panels take their turn at the same 256 k, so that those of the activations stay near; both
// tiles of a panel at the same 16 rows.
template <typename Format>
void many_rows(const BlockArgs& a) {
  constexpr std::int64_t kBytes = Format::kSteps.super_at(kDepth);
  const AmxRows& x = a.rows.tiles;
  use_tiles(16);
  Unpacked u[2];
  const int lines = static_cast<int>((kBytes / 64 + (x.M + 15) / 16 - 1) / ((x.M + 15) / 16));
  for (std::int64_t s = 0; s < x.steps; s += kDepth) {
    const int n = static_cast<int>(std::min<std::int64_t>(x.steps - s, kDepth));
    for (int p = 0; p < a.panels.count; ++p) {
      float* acc = a.acc + p * round_rows(x.M) * kPanel;
      for (int tile = 0; tile < 2; ++tile) unpack<Format>(a.panels.at(p), s, n, tile, u[tile]);
      const bool last = p + 1 == a.panels.count;
      Ahead ahead{a.panels.at(last ? 0 : p + 1) + Format::kSteps.super_at(last ? s + kDepth : s)};
      for (int m = 0; m < x.M; m += 16) {
        ahead.fetch(lines);
        const std::uint16_t* rows = x.x + amx_row_at(x, m, s);
        const float* sums = a.rows.sums + m * x.steps + s * 16;
        for (int tile = 0; tile < 2; ++tile)
          sixteen_rows<Format>(u[tile], n, rows, amx_step_words(x), sums,
                               acc + m * kPanel + tile * 16, s == 0);
      }
    }
  }
}

template <typename Format>
void panel(const BlockArgs& a) {
  FlushSubnormals flush;
  switch (a.rows.tiles.M) {
    case 1:
      return few_rows<Format, 1>(a);
    case 2:
      return few_rows<Format, 2>(a);
    case 3:
      return few_rows<Format, 3>(a);
    default:
      return many_rows<Format>(a);
  }
}

}  // namespace

void amx_matmul_blocks(const BlockArgs& a) {
  switch (a.type) {
    case PanelType::kQ4:
      return panel<FormatQ4>(a);
    case PanelType::kQ4K:
      return panel<FormatQ4K>(a);
    case PanelType::kQ5K:
      return panel<FormatQ5K>(a);
    default:
      return;
  }
}

void amx_prepare_row(const BlockRows& rows, const float* x, std::int64_t m) {
  const std::int64_t steps = rows.tiles.steps;
  for (std::int64_t s = 0; s < steps; ++s) {
    float sums[2];
    for (int half = 0; half < 2; ++half) {
      __m256i words =
          reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_loadu_ps(x + s * kStep + 16 * half)));
      __m512 rounded = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
      sums[half] = _mm512_reduce_add_ps(rounded);
      if (rows.tiles.M <= kFewRows)
        _mm512_storeu_ps(rows.wide + (m * steps + s) * kStep + 16 * half, rounded);
      else
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(rows.tiles.x + amx_row_at(rows.tiles, m, s) + 16 * half),
            words);
    }
    rows.sums[(m / 16 * steps + s) * 16 + m % 16] = sums[0] + sums[1];
  }
}

}  // namespace vitrine::cpu
