// AMX: quantised panels against M rows of bf16 activations.
//
// Levels are small integers, exact in bf16. Arithmetic at every M, per output and group of k that
// shares a scale (32 k, 16 for q6_k), groups in ascending order:
//   dot = even + odd;  even, odd: chains of fma from 0 over the even and the odd k, ascending
//   acc = fma(dot, scale, acc), then acc = fma(sum of the activations, offset, acc) where the
//   format has an offset
// which is what TDPBF16PS computes for a tile that starts at zero. Few rows therefore use fp32
// multiply-adds, where memory is the bound and nothing has to pass through a tile; more rows unpack
// the levels of 256 k to bf16 tiles in the first-level cache and scale the products of each group
// in AVX-512. Subnormal numbers count as zero, as TDPBF16PS has it.
#define VT_ISA amx

#include "kernels/cpu/ahead.h"
#include "kernels/cpu/amx_tiles.h"
#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/packed.h"

namespace vitrine::cpu {
namespace {

using amx::load_f16, amx::load_i8, amx::load_u8;

constexpr int kFewRows = 3;  // up to which fp32 multiply-adds are used

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

// A format: pairs() gives pairs 4j..4j+3 of k of a tile as bf16 words [16 outputs][2 k].
struct FormatQ8 {
  static constexpr StepLayout kSteps = kStepsQ8;
  static constexpr int kGroups = 1;  // of a step
  static constexpr bool kOffsets = false;
  static void floats(const std::byte* step, int tile, int j, __m512 even[4], __m512 odd[4]) {
    const std::byte* quads = step + kHead + tile * (kPanel * kStep / 2) + j * 128;
    for (int h = 0; h < 2; ++h) {
      amx::Vf q[4];
      amx::load_i8_quads(quads + h * 64, q);
      for (int i = 0; i < 2; ++i) even[2 * h + i] = q[2 * i].v, odd[2 * h + i] = q[2 * i + 1].v;
    }
  }
  static void pairs(const std::byte* step, int tile, int j, __m512i r[4]) {
    __m512 even[4], odd[4];
    floats(step, tile, j, even, odd);
    for (int i = 0; i < 4; ++i)
      r[i] = _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(even[i]), 16),
                             _mm512_castps_si512(odd[i]));
  }
  static Scales scales(const std::byte*, const std::byte* step, int tile, int) {
    return {load_f16(step + tile * 32).v, _mm512_setzero_ps()};
  }
};

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
  static constexpr int kGroups = 1;
  static constexpr bool kOffsets = false;
  static void pairs(const std::byte* step, int tile, int j, __m512i r[4]) {
    nibble_pairs<-8>(step, tile, j, r);
  }
  static void floats(const std::byte* step, int tile, int j, __m512 even[4], __m512 odd[4]) {
    nibble_floats<-8>(step, tile, j, even, odd);
  }
  static Scales scales(const std::byte*, const std::byte* step, int tile, int) {
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
  static constexpr int kGroups = 1;
  static constexpr bool kOffsets = true;
  static void pairs(const std::byte* step, int tile, int j, __m512i r[4]) {
    nibble_pairs<0>(step, tile, j, r);
  }
  static void floats(const std::byte* step, int tile, int j, __m512 even[4], __m512 odd[4]) {
    nibble_floats<0>(step, tile, j, even, odd);
  }
  static Scales scales(const std::byte* super, const std::byte* step, int tile, int) {
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
  static constexpr int kGroups = 1;
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
  static Scales scales(const std::byte* super, const std::byte* step, int tile, int) {
    return scales_with_mins(super, step, tile);
  }
};

// Levels 0..63 as the last bits of 128 + level; 32 and these 128 are taken off by the offset.
struct FormatQ6K {
  static constexpr StepLayout kSteps = kStepsQ6K;
  static constexpr int kGroups = 2;
  static constexpr bool kOffsets = true;
  static void pairs(const std::byte* step, int tile, int j, __m512i r[4]) {
    const __m512i bits = _mm512_set1_epi16(63), base = _mm512_set1_epi16(0x4300);
    __m512i v = load_line(step + kHead + tile * kNibbleTile + j * 64);
    __m512i sixth = load_line(step + kHead + 2 * kNibbleTile + tile * kSixthTile + j / 2 * 64);
    for (int i = 0; i < 4; ++i) {
      __m512i level =
          select(shift_words(v, 4 * i), shift_words(sixth, (4 * j + i) % 8 * 2 - 4), 48);
      r[i] = _mm512_ternarylogic_epi32(level, bits, base, 0xEA);  // (level & bits) | base
    }
  }
  static void floats(const std::byte* step, int tile, int j, __m512 even[4], __m512 odd[4]) {
    split_pairs<FormatQ6K>(step, tile, j, even, odd);
  }
  static Scales scales(const std::byte* super, const std::byte* step, int tile, int group) {
    __m512 d =
        _mm512_mul_ps(load_f16(super + tile * 32).v, load_i8(step + group * kPanel + tile * 16).v);
    return {d, _mm512_mul_ps(d, _mm512_set1_ps(-160))};
  }
};

template <typename Format>
__m512 scaled(__m512 dot, const Scales& s, float sum, __m512 acc) {
  acc = _mm512_fmadd_ps(dot, s.scale, acc);
  return Format::kOffsets ? _mm512_fmadd_ps(_mm512_set1_ps(sum), s.offset, acc) : acc;
}

// M rows by multiply-adds, straight from P panels at once: as many streams from memory.
template <typename Format, int M, int P>
void few_rows(const BlockArgs& a, int first) {
  constexpr int kGroups = Format::kGroups, kLines = Format::kSteps.step / 64;
  __m512 acc[P][M][2];
  Near ahead[P];
  for (int p = 0; p < P; ++p) {
    ahead[p].at = a.panels.at(first + p) + 2048;
    for (auto& row : acc[p]) row[0] = row[1] = _mm512_setzero_ps();
  }
  for (std::int64_t s = 0; s < a.steps; ++s)
    for (int p = 0; p < P; ++p) {
      const std::byte* super = a.panels.at(first + p) + Format::kSteps.super_at(s);
      const std::byte* step = a.panels.at(first + p) + Format::kSteps.at(s);
      ahead[p].fetch(kLines);
      for (int tile = 0; tile < 2; ++tile)
        for (int g = 0; g < kGroups; ++g) {
          __m512 even[M], odd[M];
          for (int m = 0; m < M; ++m) even[m] = odd[m] = _mm512_setzero_ps();
          for (int j = g * 4 / kGroups; j < (g + 1) * 4 / kGroups; ++j) {
            __m512 e[4], o[4];
            Format::floats(step, tile, j, e, o);
            for (int m = 0; m < M; ++m) {
              const float* x = a.rows.wide + (m * a.steps + s) * kStep + 8 * j;
              for (int i = 0; i < 4; ++i) {
                even[m] = _mm512_fmadd_ps(_mm512_set1_ps(x[2 * i]), e[i], even[m]);
                odd[m] = _mm512_fmadd_ps(_mm512_set1_ps(x[2 * i + 1]), o[i], odd[m]);
              }
            }
          }
          Scales scales = Format::scales(super, step, tile, g);
          for (int m = 0; m < M; ++m)
            acc[p][m][tile] =
                scaled<Format>(_mm512_add_ps(even[m], odd[m]), scales,
                               a.rows.sums[(s * kGroups + g) * 16 + m], acc[p][m][tile]);
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

// One tile of 16 outputs over kSuper steps, ready for the tile unit.
template <typename Format>
struct Unpacked {
  alignas(64) std::uint16_t words[kSuper][16][32];  // [step][pair of k][16 outputs][2 k]
  Scales scales[kSuper * Format::kGroups];
};

// Of the next kSuper steps, in each of the 32 places where some are fetched.
template <typename Format>
constexpr int kLinesAhead = (Format::kSteps.super_at(kSuper) / 64 + 31) / 32;

template <typename Format>
void unpack(const std::byte* panel, std::int64_t first, int steps, int tile, Ahead& ahead,
            Unpacked<Format>& to) {
  const std::byte* super = panel + Format::kSteps.super_at(first);
  for (int s = 0; s < steps; ++s) {
    const std::byte* step = panel + Format::kSteps.at(first + s);
    ahead.fetch(kLinesAhead<Format>);
    for (int j = 0; j < 4; ++j) {
      __m512i r[4];
      Format::pairs(step, tile, j, r);
      for (int i = 0; i < 4; ++i) _mm512_store_si512(to.words[s][4 * j + i], r[i]);
    }
    for (int g = 0; g < Format::kGroups; ++g)
      to.scales[s * Format::kGroups + g] = Format::scales(super, step, tile, g);
  }
}

// dots (16 rows, 16 outputs) of one group.
template <int kTile>
void product(const std::uint16_t* x, const std::uint16_t* w, float* dots) {
  if constexpr (kTile == 0) {
    _tile_zero(0);
    _tile_loadd(4, x, 64);
    _tile_loadd(6, w, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_stored(0, dots, 64);
  } else {
    _tile_zero(1);
    _tile_loadd(5, x, 64);
    _tile_loadd(7, w, 64);
    _tile_dpbf16ps(1, 5, 7);
    _tile_stored(1, dots, 64);
  }
}

// 16 rows over the unpacked steps; the tile unit is one group ahead of the scaling.
template <typename Format>
void sixteen_rows(const Unpacked<Format>& u, int steps, const std::uint16_t* x, const float* sums,
                  float* to, bool first, Ahead* ahead) {
  constexpr int kGroups = Format::kGroups, kDepth = kStep / kGroups;
  const int n = steps * kGroups;
  const std::uint16_t* w = u.words[0][0];
  alignas(64) float dots[2][256];
  __m512 acc[16];
  for (int m = 0; m < 16; ++m)
    acc[m] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(to + m * kPanel);
  auto start = [&](int i) {
    if (ahead != nullptr && i % kGroups == 0) ahead->fetch(kLinesAhead<Format>);
    const std::uint16_t* rows = x + i / kGroups * kTileWords + i % kGroups * kDepth;
    if (i % 2 == 0)
      product<0>(rows, w + i * kDepth * 16, dots[0]);
    else
      product<1>(rows, w + i * kDepth * 16, dots[1]);
  };
  auto finish = [&](int i) {
    for (int m = 0; m < 16; ++m)
      acc[m] = scaled<Format>(_mm512_load_ps(dots[i % 2] + m * 16), u.scales[i], sums[i * 16 + m],
                              acc[m]);
  };
  start(0);
  for (int i = 0; i < n; i += 2) {
    if (i + 1 < n) start(i + 1);
    finish(i);
    if (i + 1 == n) break;
    if (i + 2 < n) start(i + 2);
    finish(i + 1);
  }
  for (int m = 0; m < 16; ++m) _mm512_storeu_ps(to + m * kPanel, acc[m]);
}

// All panels take their turn at the same 256 k, so that those of the activations stay near.
template <typename Format>
void many_rows(const BlockArgs& a) {
  use_tiles(Format::kGroups == 1 ? TileDepth::kWhole : TileDepth::kHalf);
  Unpacked<Format> u;
  for (std::int64_t s = 0; s < a.steps; s += kSuper) {
    const int n = static_cast<int>(a.steps - s < kSuper ? a.steps - s : kSuper);
    for (int p = 0; p < a.panels.count; ++p) {
      const std::byte* panel = a.panels.at(p);
      float* acc = a.acc + p * round_rows(a.M) * kPanel;
      Ahead ahead{panel + Format::kSteps.super_at(s + kSuper)};
      for (int tile = 0; tile < 2; ++tile) {
        unpack(panel, s, n, tile, ahead, u);
        for (int m = 0; m < a.M; m += 16)
          sixteen_rows(u, n, a.rows.x + tile_at(m, s, a.steps),
                       a.rows.sums + (m * a.steps + s * 16) * Format::kGroups,
                       acc + m * kPanel + tile * 16, s == 0, m == 0 ? &ahead : nullptr);
      }
    }
  }
}

template <typename Format>
void panel(const BlockArgs& a) {
  FlushSubnormals flush;
  switch (a.M) {
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
    case PanelType::kQ8:
      return panel<FormatQ8>(a);
    case PanelType::kQ4:
      return panel<FormatQ4>(a);
    case PanelType::kQ4K:
      return panel<FormatQ4K>(a);
    case PanelType::kQ5K:
      return panel<FormatQ5K>(a);
    case PanelType::kQ6K:
      return panel<FormatQ6K>(a);
    default:
      return;
  }
}

void amx_prepare_row(PanelType type, const float* x, std::int64_t steps, std::int64_t m, int M,
                     const BlockRows& out) {
  const int groups = type == PanelType::kQ6K ? 2 : 1;
  const bool wide = M <= kFewRows, offsets = type != PanelType::kQ8 && type != PanelType::kQ4;
  for (std::int64_t s = 0; s < steps; ++s) {
    float sums[2];
    for (int half = 0; half < 2; ++half) {
      __m256i words =
          reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_loadu_ps(x + s * kStep + 16 * half)));
      __m512 rounded = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
      if (wide)
        _mm512_storeu_ps(out.wide + (m * steps + s) * kStep + 16 * half, rounded);
      else
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.x + tile_at(m, s, steps) + 16 * half),
                            words);
      sums[half] = _mm512_reduce_add_ps(rounded);
    }
    if (!offsets) continue;
    float* to = out.sums + (m / 16 * steps + s) * groups * 16 + m % 16;
    if (groups == 2)
      to[0] = sums[0], to[16] = sums[1];
    else
      to[0] = sums[0] + sums[1];
  }
}

}  // namespace vitrine::cpu
