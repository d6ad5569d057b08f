// How the cpu backend keeps matrices.
//
// A matrix (N,K) is cut into panels of 32 outputs; a panel is contiguous and is read front to back.
// Inside, the innermost index is the output, so that one vector holds one k of many outputs: sums
// over k need no horizontal adds, and every output is summed in ascending k by any instruction set.
//
//   kF32   [N/32][K][32] f32
//   k16    [N/32][K/32]{ 2 tiles of [16 pairs of k][16 outputs][2 k] }         f16 or bf16, 2 KiB a
//   step kQ8    [N/32][K/32]{ [32 outputs] fp16 scale, 2 tiles of [8 quads][16 outputs][4 k] int8
//   }, 1088 B kRows  rows as in the file, decoded when used (formats without a layout of their own
//   yet)
//
// A k16 tile is what TDPBF16PS takes as its second operand. Outputs past N and k past K are zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"

namespace vitrine::cpu {

inline constexpr int kPanel = 32;  // outputs
inline constexpr int kStep = 32;   // k of a k16 or kQ8 step
inline constexpr std::int64_t kStep16Bytes = kPanel * kStep * 2;
inline constexpr std::int64_t kStepQ8Bytes = kPanel * 2 + kPanel * kStep;

enum class Layout : std::uint8_t { kF32, k16, kQ8, kRows };

// How far to go in instruction sets; each includes those before it.
enum class Isa : std::uint8_t { kAvx2, kAvx512, kVnni, kBf16, kAmx };

// The arithmetic of a product, fixed by weight type and instruction set (ARCHITECTURE.md).
enum class Arithmetic : std::uint8_t { kFp32, kRows, kVnni, kBf16, kAmx };
Arithmetic arithmetic_of(DType dtype, Isa isa);

class PackedWeight final : public Weight {
 public:
  // The layout a format gets.
  static Layout layout_of(DType dtype);
  static std::int64_t size_of(DType dtype, std::int64_t rows, std::int64_t cols);

  PackedWeight(const MatrixSource& source, Buffer buffer);
  Layout layout() const { return layout_; }
  std::int64_t panels() const { return (rows() + kPanel - 1) / kPanel; }
  std::int64_t steps() const { return (cols() + kStep - 1) / kStep; }
  const std::byte* panel(std::int64_t p) const { return data_ + p * panel_bytes_; }
  const MatrixSource& source() const { return source_; }  // kRows only

  // Fills the panel from its rows; panels may be packed by different threads.
  void pack_panel(const MatrixSource& source, std::int64_t p);

 private:
  Layout layout_;
  std::int64_t panel_bytes_ = 0;
  Buffer buffer_;
  std::byte* data_ = nullptr;
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
