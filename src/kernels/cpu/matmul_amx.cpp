// AMX: 32 outputs against M rows in bf16, accumulated in fp32 by TDPBF16PS.
//
// Arithmetic at every M: k in ascending steps of 32, each output's sum kept in a tile (or, between
// blocks of an unpacked type, stored and loaded again, which changes nothing). A tile of sixteen
// rows gives each row the bits that it would have alone. Tiles: 0..3 sums of 32 rows x 32
// outputs, 4..5 activations, 6..7 weights. q8_0 is decoded to bf16 (d * q, rounded once) 16 steps
// at a time into 32 KiB, then used by all rows. Bound: memory up to 16 rows, the tile unit beyond.
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

// Sums of 16 or 32 rows over `steps` steps of weights at `w` (2 KiB each).
template <bool kTwo>
void rows_by_panel(const std::byte* w, const std::uint16_t* x, std::int64_t ldx, std::int64_t steps,
                   float* acc, bool first) {
  constexpr std::int64_t kAccStride = kPanel * 4;
  const std::int64_t stride = ldx * 2;
  if (first) {
    _tile_zero(0);
    _tile_zero(1);
    if (kTwo) {
      _tile_zero(2);
      _tile_zero(3);
    }
  } else {
    _tile_loadd(0, acc, kAccStride);
    _tile_loadd(1, acc + 16, kAccStride);
    if (kTwo) {
      _tile_loadd(2, acc + 16 * kPanel, kAccStride);
      _tile_loadd(3, acc + 16 * kPanel + 16, kAccStride);
    }
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

void all_rows(const std::byte* w, const Bf16Args& a, std::int64_t step, std::int64_t steps,
              bool first) {
  for (int m = 0; m < a.M; m += 32) {
    const std::uint16_t* x = a.x + m * a.ldx + step * kStep;
    if (a.M - m > 16)
      rows_by_panel<true>(w, x, a.ldx, steps, a.acc + m * kPanel, first);
    else
      rows_by_panel<false>(w, x, a.ldx, steps, a.acc + m * kPanel, first);
  }
}

// Two fp32 vectors, of k and k+1, to lanes of (bf16 k, bf16 k+1).
__m512i pair(__m512 even, __m512 odd) {
  __m512i low = _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(even)));
  __m512i high = _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(odd)));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

void unpack_q8(const std::byte* step, std::byte* to) {
  for (int tile = 0; tile < 2; ++tile) {
    __m512 d =
        _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(step + tile * 32)));
    const std::byte* quads = step + kPanel * 2 + tile * (kPanel * kStep / 2);
    std::byte* out = to + tile * (kStep16Bytes / 2);
    for (int i = 0; i < 8; ++i) {
      __m512i v = _mm512_loadu_si512(quads + i * 64);
      auto weight = [&](__m512i shifted) {
        return _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_srai_epi32(shifted, 24)));
      };
      __m512 k0 = weight(_mm512_slli_epi32(v, 24)), k1 = weight(_mm512_slli_epi32(v, 16));
      __m512 k2 = weight(_mm512_slli_epi32(v, 8)), k3 = weight(v);
      _mm512_storeu_si512(out + i * 128, pair(k0, k1));
      _mm512_storeu_si512(out + i * 128 + 64, pair(k2, k3));
    }
  }
}

}  // namespace

void amx_configure() {
  TileConfig config;
  for (int t = 0; t < 8; ++t) config.bytes_per_row[t] = 64, config.rows[t] = 16;
  // The compiler does not know that ldtilecfg reads all of it.
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

double amx_flops(std::int64_t rounds) {
  amx_configure();
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
  if (a.type == PanelType::kBF16) return all_rows(a.panel, a, 0, a.steps, true);
  for (std::int64_t s = 0; s < a.steps; s += kAmxBlock) {
    std::int64_t n = a.steps - s < kAmxBlock ? a.steps - s : kAmxBlock;
    for (std::int64_t i = 0; i < n; ++i)
      unpack_q8(a.panel + (s + i) * kStepQ8Bytes, a.unpacked + i * kStep16Bytes);
    all_rows(a.unpacked, a, s, n, s == 0);
  }
}

}  // namespace vitrine::cpu
