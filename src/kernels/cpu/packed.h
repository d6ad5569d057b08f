// Matrices of the cpu backend: as panels (panels.h), or, where the format has none, as the rows of
// the file, which then cost no memory beyond it and are decoded by each product that uses them.
#pragma once

#include <atomic>

#include "kernels/backend.h"
#include "kernels/cpu/panels.h"

namespace vitrine::cpu {

Arithmetic arithmetic_of(DType dtype, Isa isa);

class PackedWeight final : public Weight {
 public:
  // Bytes of memory beyond the file.
  static std::int64_t size_of(DType dtype, std::int64_t rows, std::int64_t cols);

  PackedWeight(const MatrixSource& source, Buffer buffer, WeightUse use);
  const PanelFormat* format() const { return format_; }  // null: rows of the file
  Arithmetic arithmetic(Isa isa) const {
    return format_ != nullptr ? format_->arithmetic.of(isa) : Arithmetic::kRows;
  }
  bool head() const { return use_ == WeightUse::kHead; }
  std::int64_t panels() const { return (rows() + kPanel - 1) / kPanel; }
  std::int64_t steps() const { return (cols() + kStep - 1) / kStep; }
  std::int64_t panel_bytes() const { return panel_bytes_; }  // 0 without panels
  const std::byte* panel(std::int64_t p) const { return data_ + p * panel_bytes_; }
  const MatrixSource& source() const { return source_; }  // without panels only

  // Fills the panel from its rows; panels may be packed by different threads.
  void pack_panel(const MatrixSource& source, std::int64_t p);
  // 2^power is the largest power of two, up to kMaxPower, by which every weight can be multiplied
  // and still be an fp16; of formats whose panels have largest().
  int power() const;

 private:
  const PanelFormat* format_;
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
