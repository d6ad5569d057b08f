// Panels: how the cpu backend keeps a matrix whose format has a file in formats/.
//
// A matrix (N,K) is cut into panels of 32 outputs; a panel is contiguous and is read front to back.
// Inside, the innermost index is the output, so that one vector holds one k of many outputs: sums
// over k need no horizontal adds, and every output is summed in ascending k by any instruction set.
// A panel is a row of steps of 32 k. Outputs past N and k past K are zero. Every part is a multiple
// of a cache line.
//
// A step of 16-bit weights is two tiles of [16 pairs of k][16 outputs][2 k], which TDPBF16PS takes
// as its second operand. Tiles of levels are 16-bit words [16 outputs][2 k] of which each holds the
// bits of several pairs of k, so that a shift brings a pair into the place it has in such a tile:
//   nibbles  4 vectors of 32 words; nibble i of vector j is pair 4j+i           (256 B a tile)
//   one bit  1 vector; bit p is pair p                                          (64 B)
//   two bits 2 vectors; bits 2i, 2i+1 of vector g are those of pair 8g+i        (128 B)
//
// A file formats/x.h has a struct PanelsX : PanelsBase with
//   Format        its format of quant/
//   kArithmetic   of its products, by instruction set
//   kSteps        where the steps of a panel are
//   pack_row()    fills one output of a panel from its row of the file
// and what its arithmetics take (isa/panels.h, amx_unpack.h, amx_levels.h), each in the sections
// that the instruction set it is compiled for switches on:
//   kFp32         DecodeOf<PanelsX>
//   kBytes        BytesOf<PanelsX>, kQuadOrder
//   kBf16         kBf16Tiles
//   kAmx          kBf16Tiles, or TilesOf<PanelsX> and largest()
//   kAmxIntegers  IntegersOf<PanelsX>, kIntegers
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/format.h"

namespace vitrine::cpu {

inline constexpr int kPanel = 32;  // outputs
inline constexpr int kStep = 32;   // k of a step
inline constexpr std::int64_t kStep16Bytes = kPanel * kStep * 2;
inline constexpr int kSuper = 8;  // steps of a block of 256 k
inline constexpr int kMaxPower = 15;
inline constexpr int kHead = 64;  // bytes of scales at the head of a quantised step
inline constexpr int kNibbleTile = 16 * kStep / 2, kBitTile = 64;

// Where the steps of a panel are: `super` bytes stand before every kSuper of them.
struct StepLayout {
  int super, step;
  constexpr std::int64_t at(std::int64_t s) const {
    return super_at(s) + super + s % kSuper * step;
  }
  constexpr std::int64_t super_at(std::int64_t s) const {
    return s / kSuper * (super + kSuper * step);
  }
  // Of a panel with so many steps.
  constexpr std::int64_t bytes(std::int64_t steps) const { return at(steps - 1) + step; }
};

// How far to go in instruction sets; each includes those before it.
enum class Isa : std::uint8_t { kAvx2, kAvx512, kVnni, kBf16, kAmx };

// The arithmetic of a product, fixed by weight type and instruction set (docs/lab/accuracy.md). kRows:
// rows as in the file, decoded when used, then the arithmetic of kFp32.
enum class Arithmetic : std::uint8_t { kRows, kFp32, kBytes, kBf16, kAmx, kAmxIntegers };

// The arithmetic of a format: below AVX512_BF16, with it, with AMX.
struct Arithmetics {
  Arithmetic base, bf16, amx;
  constexpr Arithmetic of(Isa isa) const {
    return isa == Isa::kAmx ? amx : isa == Isa::kBf16 ? bf16 : base;
  }
  constexpr bool have(Arithmetic a) const { return a == base || a == bf16 || a == amx; }
};

// What a format wants of the 12-bit activations of kAmxIntegers.
struct IntegerForm {
  int low = 0;     // by which their low parts are multiplied
  int bias = 0;    // of the levels
  int groups = 0;  // of 32 k, which have a scale each
  bool operator==(const IntegerForm&) const = default;
};

struct PanelsBase {
  static constexpr bool kBf16Tiles = false;  // steps are tiles of bf16, ready to multiply
  static constexpr bool kQuadOrder = false;  // bytes of k stand in the order of quad_order()
  static constexpr IntegerForm kIntegers{};
};

// The same for code that is not a template over formats.
struct PanelFormat {
  DType dtype;
  int number;  // in the list AllPanels, by which kernels find their template
  Arithmetics arithmetic;
  StepLayout steps;
  bool bf16_tiles, quad_order;
  IntegerForm integers;
  // Output n of a panel from its row of K weights.
  void (*pack_row)(std::byte* panel, std::int64_t n, const std::byte* row, std::int64_t K);
  // What no weight of the panel exceeds; null where nobody asks.
  float (*largest)(const std::byte* panel, std::int64_t steps);
};
const PanelFormat* find_panel_format(DType dtype);  // null: rows are decoded when used

// call.template operator()<Panels>() with the panels of that number, which have this arithmetic.
template <Arithmetic kArithmetic, typename... Panels, typename Call>
void with_panels(FormatList<Panels...>, int number, Call&& call) {
  int n = 0;
  auto take = [&]<typename P>() {
    if constexpr (P::kArithmetic.have(kArithmetic))
      if (n == number) call.template operator()<P>();
    ++n;
  };
  (take.template operator()<Panels>(), ...);
}

}  // namespace vitrine::cpu
