#include "kernels/cpu/packed.h"

#include <algorithm>
#include <cstring>

#include "quant/format.h"
#include "quant/q8_0.h"

namespace vitrine::cpu {
namespace {

std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

std::int64_t panel_bytes_of(Layout layout, std::int64_t cols) {
  std::int64_t steps = round_up(cols, kStep) / kStep;
  switch (layout) {
    case Layout::kF32:
      return cols * kPanel * 4;
    case Layout::k16:
      return steps * kStep16Bytes;
    case Layout::kQ8:
      return steps * kStepQ8Bytes;
    case Layout::kRows:
      return 0;
  }
  return 0;
}

}  // namespace

Layout PackedWeight::layout_of(DType dtype) {
  if (dtype == DType::kF32) return Layout::kF32;
  if (dtype == DType::kF16 || dtype == DType::kBF16) return Layout::k16;
  if (dtype == Q8_0::kInfo.dtype) return Layout::kQ8;
  return Layout::kRows;
}

Arithmetic arithmetic_of(DType dtype, Isa isa) {
  switch (PackedWeight::layout_of(dtype)) {
    case Layout::kRows:
      return Arithmetic::kRows;
    case Layout::kQ8:
      return isa >= Isa::kVnni ? Arithmetic::kVnni : Arithmetic::kFp32;
    case Layout::k16:
      if (dtype != DType::kBF16 || isa < Isa::kBf16) return Arithmetic::kFp32;
      return isa == Isa::kAmx ? Arithmetic::kAmx : Arithmetic::kBf16;
    case Layout::kF32:
      break;
  }
  return Arithmetic::kFp32;
}

std::int64_t PackedWeight::size_of(DType dtype, std::int64_t rows, std::int64_t cols) {
  return round_up(rows, kPanel) / kPanel * panel_bytes_of(layout_of(dtype), cols);
}

PackedWeight::PackedWeight(const MatrixSource& m, Buffer buffer)
    : Weight(m.rows(), m.cols, m.dtype,
             layout_of(m.dtype) == Layout::kRows
                 ? m.rows() * format_bytes(find_format(m.dtype)->info, m.cols)
                 : size_of(m.dtype, m.rows(), m.cols)),
      layout_(layout_of(m.dtype)),
      panel_bytes_(panel_bytes_of(layout_, m.cols)),
      buffer_(std::move(buffer)),
      data_(static_cast<std::byte*>(buffer_.data())) {
  if (layout_ == Layout::kRows) source_ = m;
}

void PackedWeight::pack_panel(const MatrixSource& m, std::int64_t p) {
  std::byte* to = data_ + p * panel_bytes_;
  std::int64_t K = cols();
  for (std::int64_t n = 0; n < kPanel && p * kPanel + n < rows(); ++n) {
    const std::byte* row = m.row_data[p * kPanel + n];
    std::int64_t tile = n / 16, lane = n % 16;
    if (layout_ == Layout::kF32) {
      for (std::int64_t k = 0; k < K; ++k) std::memcpy(to + (k * kPanel + n) * 4, row + k * 4, 4);
    } else if (layout_ == Layout::k16) {
      for (std::int64_t k = 0; k < K; ++k) {
        std::byte* step = to + k / kStep * kStep16Bytes + tile * (kStep16Bytes / 2);
        std::memcpy(step + ((k % kStep / 2 * 16 + lane) * 2 + k % 2) * 2, row + k * 2, 2);
      }
    } else if (layout_ == Layout::kQ8) {
      for (std::int64_t s = 0; s < K / kStep; ++s) {
        const std::byte* block = row + s * Q8_0::kInfo.bytes;
        std::byte* step = to + s * kStepQ8Bytes;
        std::memcpy(step + n * 2, block, 2);
        std::byte* q = step + kPanel * 2 + tile * (kPanel * kStep / 2);
        for (int k = 0; k < kStep; ++k) q[(k / 4 * 16 + lane) * 4 + k % 4] = block[2 + k];
      }
    }
  }
}

TableWeight::TableWeight(MatrixSource source)
    : Weight(source.rows(), source.cols, source.dtype,
             source.rows() * format_bytes(find_format(source.dtype)->info, source.cols)),
      source_(std::move(source)) {}

}  // namespace vitrine::cpu
