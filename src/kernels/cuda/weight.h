// A matrix in device memory, in the layout that matmul reads.
//
// Rows are cut into tiles of 16, columns into units; a unit of a tile is one contiguous piece that
// one warp reads. Inside, every lane finds its operands of the tensor instruction m16n8k16 (weights
// as A) in order, so that 16 bytes per lane are contiguous over the warp and nothing is transposed
// when it is used. Numbers are the file's, rearranged; sizes are the file's but for padding: rows
// to 16, columns to a unit, with zeros.
//
//   [tile][unit] with a unit of 16 rows x
//   f32    64 columns   8 x [32 lanes][4 f32]
//   f16, bf16  64       4 x [32 lanes][8 weights]                       one x per 16 columns
//   q8_0  128           4 x [32 lanes][16 bytes, biased by 128]         one x per 32 columns
//                       [8 rows][4 groups] {d of row, d of row + 8}
//   q4_0  256           4 x [32 lanes][4 words of 8 nibbles]            one x per 64 columns
//                       [8 rows][8 groups] {d of row, d of row + 8}
//   q4_k  256           4 x [32 lanes][4 words of 8 nibbles]
//                       [32 lanes] 8 bytes of scales (weight.cu)
//   q5_k  256           as q4_k, between the two: [32 lanes][4 words of fifth bits]
//   q6_k  256           as q4_0's nibbles, 2 x [32 lanes][4 words of 2-bit fields],
//                       [32 lanes][2 rows][4] int8 scales of every fourth group from l % 4,
//                       [8 rows] {d of row, d of row + 8}
//
// Lane l has rows l/4 and l/4 + 8; in 16 columns it has 2q, 2q+1, 2q+8, 2q+9 with q = l % 4.
#pragma once

#include "kernels/backend.h"
#include "kernels/cuda/context.h"

namespace vitrine::cuda {

inline constexpr int kTileRows = 16;

// Columns and bytes of a unit.
struct UnitSize {
  int cols = 0, bytes = 0;
};
UnitSize unit_size(DType dtype);  // zeros for a type without a layout

class CudaWeight final : public Weight {
 public:
  CudaWeight(const MatrixSource& m, std::int64_t bytes, Buffer memory)
      : Weight(m.rows(), m.cols, m.dtype, bytes), memory_(std::move(memory)) {}
  const std::byte* data() const { return static_cast<const std::byte*>(memory_.data()); }

 private:
  Buffer memory_;
};

std::int64_t packed_bytes(DType dtype, std::int64_t rows, std::int64_t cols);
// Copies the rows to the device and rearranges them there. The source may be dropped afterwards.
Result<std::unique_ptr<Weight>> pack_weight(const Context& c, const MatrixSource& source);

}  // namespace vitrine::cuda
