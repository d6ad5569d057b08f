// The shapes of this thread's AMX tiles.
//
// Every kernel here has tiles 0 and 1, or 0..3, for sums, 4 for activations, 5 for weights: `rows`
// of them, and 16 pairs of k. The fewer hold something the better: when the other hardware thread
// of the core is busy, every one more slows products and loads down (docs/lab/amx.md). So 4 and
// 5 are loaded over and over, and who used 2 and 3 leaves them zero. A tile state belongs to a
// thread, and so does what we know of it.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace vitrine::cpu {

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Around stores to what tile loads read: the compiler does not know that they read memory.
inline void order_tile_loads(const void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

inline void use_tiles(int rows) {
  thread_local int current = 0;
  if (current == rows) return;
  TileConfig config;
  for (int t = 0; t < 6; ++t) {
    config.bytes_per_row[t] = 64;
    config.rows[t] = static_cast<std::uint8_t>(t < 5 ? rows : 16);
  }
  // The compiler does not know that ldtilecfg reads all of it.
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
  current = rows;
}

}  // namespace vitrine::cpu
