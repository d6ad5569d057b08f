// A matrix in device memory, in the layout that matmul reads.
//
// Rows are cut into tiles of 16, columns into units; a unit of a tile is one contiguous piece that
// one warp reads: [tile][unit]. Inside, every lane finds its operands of the tensor instruction
// m16n8k16 (weights as A) in order, so that 16 bytes per lane are contiguous over the warp and
// nothing is transposed when it is used. Lane l has rows l/4 and l/4 + 8; in 16 columns it has 2q,
// 2q+1, 2q+8, 2q+9 with q = l % 4. Numbers are the file's, rearranged; sizes are the file's but for
// padding: rows to 16, columns to a unit, with zeros. What a unit holds stands in the format's file
// in formats/.
//
// A format without such a file is decoded by the host when it is packed. If it is quantised, to
// f16: two bytes a weight, and rounded to 11 bits where levels have eight at most; many rows of
// every quantised format are multiplied so, too (matmul_many.cuh). Else to f32, which is exact.
#pragma once

#include <span>

#include "kernels/backend.h"
#include "kernels/cuda/context.h"

namespace vitrine {
namespace cuda {

inline constexpr int kTileRows = 16;

struct Job;   // matmul_kernels.cuh
struct Rows;  // unit.cuh

// A format's units and kernels, of its file in formats/.
struct CudaFormat {
  DType dtype;
  int unit_cols, unit_bytes;
  // Queues the rearrangement of rows on the device.
  void (*pack)(const Context& c, std::uint32_t* out, const Rows& rows);
  // Whether few() takes so many rows of this length.
  bool (*few_fits)(const Context& c, const Job& job);
  void (*few)(Context& c, Job job);
  void (*tile)(Context& c, Job job, std::byte* workspace, std::int64_t bytes);
  // False, with no output written, where it cannot.
  bool (*many)(Context& c, Job job, std::byte* workspace, std::int64_t bytes);
};

class CudaWeight final : public Weight {
 public:
  CudaWeight(const MatrixSource& m, const CudaFormat& format, std::int64_t bytes, Buffer memory)
      : Weight(m.rows(), m.cols, m.dtype, bytes), format_(format), memory_(std::move(memory)) {}
  // In which it is kept: the file's, or what that was decoded to.
  const CudaFormat& format() const { return format_; }
  const std::byte* data() const { return static_cast<const std::byte*>(memory_.data()); }

 private:
  const CudaFormat& format_;
  Buffer memory_;
};

// An embedding table: the file's rows.
class CudaTable final : public Weight {
 public:
  CudaTable(const MatrixSource& m, std::int64_t bytes, Buffer memory)
      : Weight(m.rows(), m.cols, m.dtype, bytes), memory_(std::move(memory)) {}
  const std::byte* data() const { return static_cast<const std::byte*>(memory_.data()); }

 private:
  Buffer memory_;
};

std::int64_t packed_bytes(DType dtype, std::int64_t rows, std::int64_t cols, WeightUse use);
// Copies the rows to the device, where they are rearranged unless they are a table. The source may
// be dropped afterwards.
Result<std::unique_ptr<Weight>> pack_weight(const Context& c, const MatrixSource& source,
                                            WeightUse use);

}  // namespace cuda

std::span<const cuda::CudaFormat* const> all_cuda_formats();

}  // namespace vitrine
