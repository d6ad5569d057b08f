// Panels of levels of four to six bits: a step is kHead bytes of scales, two tiles of nibbles, and
// two tiles of the bits above them where there are some.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/panels.h"
#if defined(VT_ISA)
#include "kernels/cpu/isa/levels.h"
#endif
#if defined(VT_AMX_INTEGERS)
#include "kernels/cpu/amx_levels.h"
#endif

namespace vitrine::cpu {

struct NibblePanels : PanelsBase {
  static constexpr Arithmetics kArithmetic{Arithmetic::kBytes, Arithmetic::kBytes,
                                           Arithmetic::kAmxIntegers};
  static constexpr bool kQuadOrder = true;
};

// The bits above the nibbles in a step, of output n.
inline std::byte* high_tile(std::byte* step, std::int64_t n, int bits) {
  return step + kHead + 2 * kNibbleTile + n / 16 * bits * kBitTile;
}

// The levels of a step's 32 k, a byte each.
struct StepLevels {
  std::uint64_t eight[4];
};
// (bytes >> shift & mask) of 32 bytes.
inline StepLevels levels_of(const std::uint8_t* bytes, int shift, std::uint8_t mask) {
  StepLevels out;
  std::memcpy(&out, bytes, sizeof out);
  for (std::uint64_t& x : out.eight) x = x >> shift & (0x0101010101010101u * mask);
  return out;
}

// A lane of a tile is one output: a 32-bit word per vector, even k in its low half, odd k in its
// high half.
inline void put_word(std::byte* tile, std::int64_t vector, std::int64_t lane, std::uint64_t even,
                     std::uint64_t odd) {
  auto word = static_cast<std::uint32_t>(even | odd << 16);
  std::memcpy(tile + vector * 64 + lane * 4, &word, 4);
}

// The low four bits of the levels, of output n.
inline void put_nibbles(std::byte* step, std::int64_t n, const StepLevels& levels) {
  std::byte* tile = step + kHead + n / 16 * kNibbleTile;
  for (int v = 0; v < 4; ++v)
    put_word(tile, v, n % 16, _pext_u64(levels.eight[v], 0x000F000F000F000F),
             _pext_u64(levels.eight[v], 0x0F000F000F000F00));
}

}  // namespace vitrine::cpu
