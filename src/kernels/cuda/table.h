// An embedding table: the file's rows in device memory.
#pragma once

#include "kernels/backend.h"

namespace vitrine::cuda {

class CudaTable final : public Weight {
 public:
  CudaTable(const MatrixSource& m, std::int64_t bytes, Buffer memory)
      : Weight(m.rows(), m.cols, m.dtype, bytes), memory_(std::move(memory)) {}
  const std::byte* data() const { return static_cast<const std::byte*>(memory_.data()); }

 private:
  Buffer memory_;
};

}  // namespace vitrine::cuda
