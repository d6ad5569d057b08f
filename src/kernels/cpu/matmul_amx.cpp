// AMX: 32 outputs against M rows.
//
// bf16: activations and weights in bf16, accumulated in fp32 by TDPBF16PS, k in ascending steps
// of 32. A tile of sixteen rows gives each row the bits that it would have alone. Tiles: 0..3 sums
// of 32 rows x 32 outputs, 4..5 activations, 6..7 weights. q8_0: the arithmetic of matmul_vnni.cpp,
// to the bit, because integer dot products are exact: TDPBSSD makes those of a group of 32 k for
// sixteen rows, AVX-512 scales and sums them. A step of 32 k uses half of a tile's depth; the
// scaling, not the tile unit, is the bound.
#include <immintrin.h>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/packed.h"

namespace vitrine::cpu {
namespace {

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Sums of 16 or 32 rows over all steps of the panel.
template <bool kTwo>
void rows_by_panel(const std::byte* w, const std::uint16_t* x, std::int64_t ldx, std::int64_t steps,
                   float* acc) {
  constexpr std::int64_t kAccStride = kPanel * 4;
  const std::int64_t stride = ldx * 2;
  _tile_zero(0);
  _tile_zero(1);
  if (kTwo) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::int64_t s = 0; s < steps; ++s) {
    const std::byte* b = w + s * kStep16Bytes;
    if (!kTwo) _mm_prefetch(reinterpret_cast<const char*>(b + 4 * kStep16Bytes), _MM_HINT_T1);
    _tile_loadd(4, x + s * kStep, stride);
    _tile_loadd(6, b, 64);
    _tile_loadd(7, b + kStep16Bytes / 2, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (kTwo) {
      _tile_loadd(5, x + 16 * ldx + s * kStep, stride);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, acc, kAccStride);
  _tile_stored(1, acc + 16, kAccStride);
  if (kTwo) {
    _tile_stored(2, acc + 16 * kPanel, kAccStride);
    _tile_stored(3, acc + 16 * kPanel + 16, kAccStride);
  }
}

void all_rows(const Bf16Args& a, std::int64_t steps) {
  for (int m = 0; m < a.M; m += 32) {
    const std::uint16_t* x = a.x + m * a.ldx;
    if (a.M - m > 16)
      rows_by_panel<true>(a.panel, x, a.ldx, steps, a.acc + m * kPanel);
    else
      rows_by_panel<false>(a.panel, x, a.ldx, steps, a.acc + m * kPanel);
  }
}

// int8 products of one step: 16 rows x 16 outputs, high and low halves, into `dots` (2,16,16).
void step_dots(const std::int8_t* high, const std::int8_t* low, std::int64_t row_bytes,
               const std::byte* quads, std::int32_t* dots) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_loadd(4, high, row_bytes);
  _tile_loadd(5, low, row_bytes);
  _tile_loadd(6, quads, 64);
  _tile_dpbssd(0, 4, 6);
  _tile_dpbssd(1, 5, 6);
  _tile_stored(0, dots, 64);
  _tile_stored(1, dots + 256, 64);
}

enum class TileUse : std::uint8_t { kNone, kBf16, kBytes };

// The shapes of this thread's tiles. A tile state belongs to a thread, so does what we know of it.
void use_tiles(TileUse use) {
  thread_local TileUse current = TileUse::kNone;
  if (current == use) return;
  TileConfig config;
  for (int t = 0; t < 8; ++t) config.bytes_per_row[t] = 64, config.rows[t] = 16;
  // int8: activations 16 rows of 32 k, weights 8 quads of k.
  if (use == TileUse::kBytes)
    config.bytes_per_row[4] = config.bytes_per_row[5] = 32, config.rows[6] = 8;
  // The compiler does not know that ldtilecfg reads all of it.
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
  current = use;
}

}  // namespace

double amx_flops(std::int64_t rounds) {
  use_tiles(TileUse::kBf16);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (std::int64_t r = 0; r < rounds; ++r) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  return 4.0 * 2 * 16 * 16 * 32 * static_cast<double>(rounds);
}

void amx_matmul_panel(const Bf16Args& a) {
  use_tiles(TileUse::kBf16);
  all_rows(a, a.steps);
}

void amx_matmul_panel_q8(const VnniArgs& a) {
  use_tiles(TileUse::kBytes);
  alignas(64) std::int32_t dots[2][2][256];
  for (int first = 0; first < a.M; first += 16) {
    const int n = a.M - first < 16 ? a.M - first : 16;
    __m512 acc[16][2];
    for (auto& row : acc) row[0] = row[1] = _mm512_setzero_ps();
    for (std::int64_t s = 0; s < a.steps; ++s) {
      const std::byte* step = a.panel + s * kStepQ8Bytes;
      const std::int64_t at = (first * a.steps + s) * kStep;
      for (int tile = 0; tile < 2; ++tile)
        step_dots(a.rows.high + at, a.rows.low + at, a.steps * kStep,
                  step + kPanel * 2 + tile * (kPanel * kStep / 2), dots[tile][0]);
      for (int tile = 0; tile < 2; ++tile) {
        __m512 d =
            _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(step + tile * 32)));
        for (int m = 0; m < n; ++m) {
          __m512i high = _mm512_load_si512(dots[tile][0] + m * 16);
          __m512i low = _mm512_load_si512(dots[tile][1] + m * 16);
          __m512 dot = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low));
          __m512 scale = _mm512_mul_ps(_mm512_set1_ps(a.rows.scale[(first + m) * a.steps + s]), d);
          acc[m][tile] = _mm512_fmadd_ps(dot, scale, acc[m][tile]);
        }
      }
    }
    for (int m = 0; m < n; ++m) {
      float* to = a.acc + (first + m) * kPanel;
      _mm512_storeu_ps(to, acc[m][0]);
      _mm512_storeu_ps(to + 16, acc[m][1]);
    }
  }
}

}  // namespace vitrine::cpu
