// Matrices: as a file holds them, and as a device keeps them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace vitrine {

// A matrix as a file holds it: N rows of K weights in the file's format. Every row has a pointer of
// its own, so that slicing, joining and permuting rows copies nothing, and the rows may be those of
// one matrix of a stack. `owner` keeps rows alive that are not in the file; rows of the file are
// valid while the file is open.
struct MatrixSource {
  std::string name;  // the tensor's, for messages
  DType dtype = DType::kF32;
  std::int64_t cols = 0;                   // K, a multiple of the format's block
  std::vector<const std::byte*> row_data;  // N
  std::shared_ptr<const void> owner;
  std::int64_t rows() const { return static_cast<std::int64_t>(row_data.size()); }
};

// What a matrix is packed for.
//  - kMatmul: Ops::matmul and its fusions.
//  - kHead: the same, for the product that gives logits: later layers cannot average its rounding
//    away, so a backend may compute it more exactly.
//  - kTable: Ops::embed.
enum class WeightUse { kMatmul, kHead, kTable };

// A packed matrix, in whatever layout its device reads. Immutable. Belongs to the caller of
// Device::pack(), who drops it before the device.
class Weight {
 public:
  virtual ~Weight() = default;
  std::int64_t rows() const { return rows_; }    // N
  std::int64_t cols() const { return cols_; }    // K
  DType dtype() const { return dtype_; }         // of the file
  std::int64_t bytes() const { return bytes_; }  // that one pass over the matrix reads

 protected:
  Weight(std::int64_t rows, std::int64_t cols, DType dtype, std::int64_t bytes)
      : rows_(rows), cols_(cols), dtype_(dtype), bytes_(bytes) {}

 private:
  std::int64_t rows_, cols_;
  DType dtype_;
  std::int64_t bytes_;
};

}  // namespace vitrine
