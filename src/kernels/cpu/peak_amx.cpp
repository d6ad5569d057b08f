// What the tile unit can do, for the share of the peak that a benchmark reports.
#include <algorithm>

#include "kernels/cpu/amx_tiles.h"
#include "kernels/cpu/kernels.h"

namespace vitrine::cpu {
namespace {

// Tiles of 16 by 64 bytes. Zeros would flatter: a tile that was zeroed holds nothing (amx_tiles.h).
void load_ones(std::uint16_t word) {
  alignas(64) std::uint16_t ones[kTileWords];
  std::fill_n(ones, kTileWords, word);
  use_tiles(16);
  order_tile_loads(ones);
  _tile_zero(0);
  _tile_zero(1);
  _tile_loadd(4, ones, 64);
  _tile_loadd(5, ones, 64);
}

}  // namespace

double amx_flops(std::int64_t rounds) {
  load_ones(0x3F80);
  for (std::int64_t r = 0; r < rounds; ++r) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
  }
  return 2.0 * 2 * 16 * 16 * 32 * static_cast<double>(rounds);
}

double amx_byte_ops(std::int64_t rounds) {
  load_ones(0x0101);
  for (std::int64_t r = 0; r < rounds; ++r) {
    _tile_dpbssd(0, 4, 5);
    _tile_dpbssd(1, 4, 5);
  }
  return 2.0 * 2 * 16 * 16 * 64 * static_cast<double>(rounds);
}

}  // namespace vitrine::cpu
