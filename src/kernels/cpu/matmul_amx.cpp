// AMX: 32 outputs against M rows.
//
// Activations and weights in bf16, accumulated in fp32 by TDPBF16PS, k in ascending steps of 32. A
// tile of sixteen rows gives each row the bits that it would have alone.
#include <immintrin.h>

#include "kernels/cpu/amx_tiles.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/packed.h"

namespace vitrine::cpu {
namespace {

// Sums of 16 or 32 rows over all steps of the panel.
template <bool kTwo>
void rows_by_panel(const std::byte* w, const std::uint16_t* x, std::int64_t steps, float* acc) {
  constexpr std::int64_t kAccStride = kPanel * 4;
  _tile_zero(0);
  _tile_zero(1);
  if (kTwo) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::int64_t s = 0; s < steps; ++s) {
    const std::byte* b = w + s * kStep16Bytes;
    if (!kTwo) _mm_prefetch(reinterpret_cast<const char*>(b + 4 * kStep16Bytes), _MM_HINT_T1);
    _tile_loadd(4, x + s * kTileWords, 64);
    _tile_loadd(6, b, 64);
    _tile_loadd(7, b + kStep16Bytes / 2, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (kTwo) {
      _tile_loadd(5, x + (steps + s) * kTileWords, 64);
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

}  // namespace

double amx_flops(std::int64_t rounds) {
  use_tiles(TileDepth::kWhole);
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
  use_tiles(TileDepth::kWhole);
  for (int m = 0; m < a.M; m += 32) {
    const std::uint16_t* x = a.x + tile_at(m, 0, a.steps);
    if (a.M - m > 16)
      rows_by_panel<true>(a.panel, x, a.steps, a.acc + m * kPanel);
    else
      rows_by_panel<false>(a.panel, x, a.steps, a.acc + m * kPanel);
  }
}

}  // namespace vitrine::cpu
