// The shapes of this thread's AMX tiles.
//
// Every kernel here has tiles 0..3 for sums, 4..5 for activations, 6..7 for weights. A whole depth
// is 32 k in bf16, a half 16. A tile state belongs to a thread, and so does what we know of it.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace vitrine::cpu {

enum class TileDepth : std::uint8_t { kNone, kWhole, kHalf };

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

inline void use_tiles(TileDepth depth) {
  thread_local TileDepth current = TileDepth::kNone;
  if (current == depth) return;
  TileConfig config;
  for (int t = 0; t < 8; ++t) config.bytes_per_row[t] = 64, config.rows[t] = 16;
  if (depth == TileDepth::kHalf) {
    config.bytes_per_row[4] = config.bytes_per_row[5] = 32;
    config.rows[6] = config.rows[7] = 8;
  }
  // The compiler does not know that ldtilecfg reads all of it.
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
  current = depth;
}

}  // namespace vitrine::cpu
