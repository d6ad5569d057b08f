// A weight in units (weight.h), and what the file of a format, formats/x.cuh, says of them: a
// struct WeightX with
//   Format       its format of quant/
//   pack_word()  word w of the unit that begins at row `row`, column `col` of the file's rows
// and what a warp makes of a unit: operands of m16n8k16 out of its words, and the scales of its
// groups. Weights are exact: levels as f16 integers with the group's scale applied to the f32 sum
// of the group, f16 and bf16 as they are, f32 as the sum of three bf16.
//
// kCols, kWords: of a unit. kHalf: operands are f16, not bf16. kPlanes: operands that add up to the
// weight. kGroup: columns with one scale (64: none). kMin: the group has a minimum, too. kScratch:
// floats that prepare() fills for scale(). A chunk is 64 columns, as load() gives it to operand().
// Scale: {scale of row r, of row r + 8, minimum of r, of r + 8}.
//
// For the product with one row (matmul_one.cuh), where kLevels: bytes() gives the levels of the
// h-th 32 columns of a chunk as operand A of m16n8k32, kOffset above the weight's; its columns
// stand in the order 0, 8, 1, 9, 2, 10 ... of every 16. one_scales() gives the lane's share.
#pragma once

#include "kernels/cuda/instructions.cuh"

namespace vitrine::cuda {

// Rows in the kept format, on the device.
struct Rows {
  const std::uint8_t* data;
  std::int64_t stride, count, cols;
  // Byte `i` of the row, or 0 where there is no such row.
  __device__ std::uint32_t byte(std::int64_t row, std::int64_t i) const {
    return row < count ? data[row * stride + i] : 0;
  }
  __device__ std::uint32_t half(std::int64_t row, std::int64_t i) const {
    return byte(row, i) | byte(row, i + 1) << 8;
  }
};

// Row (within the tile) and column (within 16) of element h of register i of a lane.
__device__ inline int row_of(int lane, int i) { return lane / 4 + 8 * (i & 1); }
__device__ inline int col_of(int lane, int i, int h) { return 2 * (lane % 4) + 8 * (i >> 1) + h; }
// Column (within 16) of byte b of the operand of levels.
__device__ inline int byte_col(int lane, int b) { return 2 * (lane % 4) + 8 * (b % 2) + b / 2; }

// {d of row, d of row + 8} of the block at column k, at byte `at` of blocks of `bytes` per `block`.
__device__ inline std::uint32_t pair_of_halves(const Rows& m, std::int64_t row, std::int64_t k,
                                               int block, int bytes, int at) {
  if (k >= m.cols) return 0;
  std::int64_t i = k / block * bytes + at;
  return m.half(row, i) | m.half(row + 8, i) << 16;
}

// Two halves each: 1024, whose last bit is 1, and 64, whose last bit is 1/16.
inline constexpr std::uint32_t kF16_1024 = 0x64006400, kF16_64 = 0x54005400;

// Of rows r and r + 8 and the lane's n groups: those from n (lane % 4) on, or, of groups of 16,
// lane % 4 of every four.
template <int n>
struct OneScales {
  float scale[2][n];
  float min[2][n];
};

// Of a format without groups: nothing to scale.
struct NoScales {
  static constexpr bool kMin = false, kLevels = false;
  static constexpr int kGroup = 64, kScratch = 0;
  static __device__ void prepare(const std::uint32_t*, float*, int) {}
  static __device__ float4 scale(const std::uint32_t*, const float*, int, int) { return {}; }
};

}  // namespace vitrine::cuda
