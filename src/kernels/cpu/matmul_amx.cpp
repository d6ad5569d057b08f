// AMX: 32 outputs against M rows.
//
// Activations and weights in bf16, accumulated in fp32 by TDPBF16PS, k in ascending steps of 32. A
// tile of sixteen rows gives each row the bits that it would have alone.
#include <immintrin.h>

#include "kernels/cpu/ahead.h"
#include "kernels/cpu/amx_tiles.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/packed.h"

namespace vitrine::cpu {
namespace {

constexpr std::int64_t kAccStride = kPanel * 4;
constexpr int kLines = kStep16Bytes / 64;

// 16 rows against one panel or two at once: as many streams from memory.
template <bool kTwo>
void sixteen_rows(const Bf16Args& a, int p) {
  Ahead ahead[2] = {{a.panels.at(p) + 2 * kStep16Bytes}, {a.panels.at(p + 1) + 2 * kStep16Bytes}};
  _tile_zero(0);
  _tile_zero(1);
  if (kTwo) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::int64_t s = 0; s < a.steps; ++s) {
    const std::byte* b = a.panels.at(p) + s * kStep16Bytes;
    ahead[0].fetch(kLines);
    _tile_loadd(4, a.x + s * kTileWords, 64);
    _tile_loadd(6, b, 64);
    _tile_loadd(7, b + kStep16Bytes / 2, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (kTwo) {
      b += a.panels.bytes;
      ahead[1].fetch(kLines);
      _tile_loadd(6, b, 64);
      _tile_loadd(7, b + kStep16Bytes / 2, 64);
      _tile_dpbf16ps(2, 4, 6);
      _tile_dpbf16ps(3, 4, 7);
    }
  }
  float* acc = a.acc + p * 16 * kPanel;
  _tile_stored(0, acc, kAccStride);
  _tile_stored(1, acc + 16, kAccStride);
  if (kTwo) {
    _tile_stored(2, acc + 16 * kPanel, kAccStride);
    _tile_stored(3, acc + 16 * kPanel + 16, kAccStride);
  }
}

// Steps of k that all panels go through before the next: their activations stay in the second-level
// cache.
constexpr std::int64_t kBlockSteps = 32;

// 32 rows from m on against one panel, over the steps first .. last-1; the last 16 rows may be
// missing.
void thirty_two_rows(const Bf16Args& a, int p, int m, std::int64_t first, std::int64_t last) {
  const bool two = a.M - m > 16;
  const std::uint16_t* x = a.x + tile_at(m, 0, a.steps);
  float* acc = a.acc + (p * round_rows(a.M) + m) * kPanel;
  if (first == 0) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, acc, kAccStride);
    _tile_loadd(1, acc + 16, kAccStride);
    if (two) {
      _tile_loadd(2, acc + 16 * kPanel, kAccStride);
      _tile_loadd(3, acc + 16 * kPanel + 16, kAccStride);
    }
  }
  for (std::int64_t s = first; s < last; ++s) {
    const std::byte* b = a.panels.at(p) + s * kStep16Bytes;
    _tile_loadd(4, x + s * kTileWords, 64);
    _tile_loadd(6, b, 64);
    _tile_loadd(7, b + kStep16Bytes / 2, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (two) {
      _tile_loadd(5, x + (a.steps + s) * kTileWords, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, acc, kAccStride);
  _tile_stored(1, acc + 16, kAccStride);
  if (two) {
    _tile_stored(2, acc + 16 * kPanel, kAccStride);
    _tile_stored(3, acc + 16 * kPanel + 16, kAccStride);
  }
}

void many_rows(const Bf16Args& a) {
  for (std::int64_t s = 0; s < a.steps; s += kBlockSteps)
    for (int p = 0; p < a.panels.count; ++p) {
      const std::int64_t last = s + kBlockSteps < a.steps ? s + kBlockSteps : a.steps;
      Ahead{a.panels.at(p) + s * kStep16Bytes}.fetch(static_cast<int>((last - s) * kLines));
      for (int m = 0; m < a.M; m += 32) thirty_two_rows(a, p, m, s, last);
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

void amx_matmul_panels(const Bf16Args& a) {
  use_tiles(TileDepth::kWhole);
  if (a.M > 16) return many_rows(a);
  int p = 0;
  for (; p + 2 <= a.panels.count; p += 2) sixteen_rows<true>(a, p);
  if (p < a.panels.count) sixteen_rows<false>(a, p);
}

}  // namespace vitrine::cpu
