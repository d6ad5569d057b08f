// A matrix in device memory, in the layout that matmul reads.
#pragma once

#include "kernels/backend.h"
#include "kernels/cuda/context.h"

namespace vitrine::cuda {

class CudaWeight final : public Weight {
 public:
  CudaWeight(const MatrixSource& m, std::int64_t bytes, Buffer memory)
      : Weight(m.rows(), m.cols, m.dtype, bytes), memory_(std::move(memory)) {}
  const std::byte* data() const { return static_cast<const std::byte*>(memory_.data()); }

 private:
  Buffer memory_;
};

std::int64_t packed_bytes(DType dtype, std::int64_t rows, std::int64_t cols);
Result<std::unique_ptr<Weight>> pack_weight(const Context& c, const MatrixSource& source);

}  // namespace vitrine::cuda
