// How the cpu backend keeps matrices.
//
// A matrix (N,K) is cut into panels of 32 outputs; a panel is contiguous and is read front to back.
// Inside, the innermost index is the output, so that one vector holds one k of many outputs: sums
// over k need no horizontal adds, and every output is summed in ascending k by any instruction set.
//
//   kF32   [N/32][K][32] f32
//   k16    [N/32][K/32]{ 2 tiles of [16 pairs of k][16 outputs][2 k] }    f16 or bf16
//   kQ8    [N/32][K/32]{ [32] fp16 scale, 2 tiles of [8 quads of k][16 outputs][4 k] int8 }
//   kQ4    [N/32][K/256]{ [32] bf16 inverse, 8 of { [32] fp16 scale, 2 tiles of nibbles } }
//   kQ4K   [N/32][K/256]{ [32] fp16 d, [32] fp16 dmin, 8 of { [32] u8 scale, [32] u8 min,
//                         2 tiles of nibbles } }
//   kQ5K   as kQ4K, each step followed by 2 tiles of fifth bits
//   kQ6K   [N/32][K/256]{ [32] fp16 d, 8 of { [2 halves of 16 k][32] i8 scale, 2 tiles of nibbles,
//                         2 tiles of fifth and sixth bits } }
//   kRows  rows as in the file, decoded when used (formats without a layout of their own)
//
// A k16 tile is what TDPBF16PS takes as its second operand. The other tiles are 16-bit words
// [16 outputs][2 k] of which each holds the bits of several pairs of k, so that a shift brings a
// pair into the place it has in a k16 tile:
//   nibbles  4 vectors of 32 words; nibble i of vector j is pair 4j+i           (256 B a tile)
//   fifth    1 vector; bit p is pair p                                          (64 B)
//   sixth    2 vectors; bits 2i, 2i+1 of vector g are those of pair 8g+i        (128 B)
// An inverse times the scales of its 256 k is at most 495 in size: AMX takes them as integers.
// Outputs past N and k past K are zero. Every part is a multiple of a cache line.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"

namespace vitrine::cpu {

inline constexpr int kPanel = 32;  // outputs
inline constexpr int kStep = 32;   // k of a k16 or kQ8 step
inline constexpr std::int64_t kStep16Bytes = kPanel * kStep * 2;
inline constexpr int kSuper = 8;  // steps of a block of 256 k
inline constexpr int kMaxPower = 15;
inline constexpr int kHead = 64;  // bytes of scales at the head of a quantised step
inline constexpr int kNibbleTile = 16 * kStep / 2, kFifthTile = 64, kSixthTile = 128;

enum class Layout : std::uint8_t { kF32, k16, kQ8, kQ4, kQ4K, kQ5K, kQ6K, kRows };

// Where the steps of a quantised panel are: `super` bytes stand before every kSuper of them.
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
inline constexpr StepLayout kStepsQ8{0, kHead + kPanel* kStep};
inline constexpr StepLayout kStepsQ4{64, kHead + 2 * kNibbleTile};
inline constexpr StepLayout kStepsQ4K{128, kHead + 2 * kNibbleTile};
inline constexpr StepLayout kStepsQ5K{128, kHead + 2 * (kNibbleTile + kFifthTile)};
inline constexpr StepLayout kStepsQ6K{64, kHead + 2 * (kNibbleTile + kSixthTile)};

// How far to go in instruction sets; each includes those before it.
enum class Isa : std::uint8_t { kAvx2, kAvx512, kVnni, kBf16, kAmx };

// The arithmetic of a product, fixed by weight type and instruction set (ARCHITECTURE.md).
enum class Arithmetic : std::uint8_t { kFp32, kRows, kBytes, kBf16, kAmx, kAmxIntegers };
Arithmetic arithmetic_of(DType dtype, Isa isa);

class PackedWeight final : public Weight {
 public:
  // The layout a format gets.
  static Layout layout_of(DType dtype);
  static std::int64_t size_of(DType dtype, std::int64_t rows, std::int64_t cols);

  PackedWeight(const MatrixSource& source, Buffer buffer, WeightUse use);
  Layout layout() const { return layout_; }
  bool head() const { return use_ == WeightUse::kHead; }
  std::int64_t panels() const { return (rows() + kPanel - 1) / kPanel; }
  std::int64_t steps() const { return (cols() + kStep - 1) / kStep; }
  std::int64_t panel_bytes() const { return panel_bytes_; }
  const std::byte* panel(std::int64_t p) const { return data_ + p * panel_bytes_; }
  const MatrixSource& source() const { return source_; }  // kRows only

  // Fills the panel from its rows; panels may be packed by different threads.
  void pack_panel(const MatrixSource& source, std::int64_t p);
  // For q8_0: 2^power is the largest power of two, up to kMaxPower, by which every
  // weight can be multiplied and still be an fp16.
  int power() const;

 private:
  Layout layout_;
  WeightUse use_;
  std::int64_t panel_bytes_ = 0;
  Buffer buffer_;
  std::byte* data_ = nullptr;
  std::atomic<float> largest_ = 0;  // no weight is larger
  MatrixSource source_;
};

// An embedding table: rows as in the file.
class TableWeight final : public Weight {
 public:
  explicit TableWeight(MatrixSource source);
  const MatrixSource& source() const { return source_; }

 private:
  MatrixSource source_;
};

}  // namespace vitrine::cpu
