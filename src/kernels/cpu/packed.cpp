#include "kernels/cpu/packed.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "panels.gen.h"

namespace vitrine::cpu {
namespace {

template <typename Panels>
PanelFormat describe(int number) {
  PanelFormat f{Panels::Format::kInfo.dtype,
                number,
                Panels::kArithmetic,
                Panels::kSteps,
                Panels::kBf16Tiles,
                Panels::kQuadOrder,
                Panels::kIntegers,
                Panels::pack_row,
                nullptr};
  if constexpr (requires { Panels::largest; }) f.largest = Panels::largest;
  return f;
}

template <typename... Panels>
std::span<const PanelFormat> make_table(FormatList<Panels...>) {
  int n = 0;
  static const PanelFormat kTable[] = {describe<Panels>(n++)...};
  return kTable;
}

std::int64_t panel_bytes_of(const PanelFormat* format, std::int64_t cols) {
  return format != nullptr && cols > 0 ? format->steps.bytes((cols + kStep - 1) / kStep) : 0;
}

std::int64_t file_bytes(const MatrixSource& m) {
  return m.rows() * format_bytes(find_format(m.dtype)->info, m.cols);
}

}  // namespace

const PanelFormat* find_panel_format(DType dtype) {
  for (const PanelFormat& f : make_table(AllPanels{}))
    if (f.dtype == dtype) return &f;
  return nullptr;
}

Arithmetic arithmetic_of(DType dtype, Isa isa) {
  const PanelFormat* format = find_panel_format(dtype);
  return format != nullptr ? format->arithmetic.of(isa) : Arithmetic::kRows;
}

std::int64_t PackedWeight::size_of(DType dtype, std::int64_t rows, std::int64_t cols) {
  return (rows + kPanel - 1) / kPanel * panel_bytes_of(find_panel_format(dtype), cols);
}

PackedWeight::PackedWeight(const MatrixSource& m, Buffer buffer, WeightUse use)
    : Weight(m.rows(), m.cols, m.dtype,
             find_panel_format(m.dtype) != nullptr ? size_of(m.dtype, m.rows(), m.cols)
                                                   : file_bytes(m)),
      format_(find_panel_format(m.dtype)),
      use_(use),
      panel_bytes_(panel_bytes_of(format_, m.cols)),
      buffer_(std::move(buffer)),
      data_(static_cast<std::byte*>(buffer_.data())) {
  if (format_ == nullptr) source_ = m;
}

void PackedWeight::pack_panel(const MatrixSource& m, std::int64_t p) {
  std::byte* to = data_ + p * panel_bytes_;
  for (std::int64_t n = 0; n < kPanel && p * kPanel + n < rows(); ++n)
    format_->pack_row(to, n, m.row_data[p * kPanel + n], cols());
  if (format_->largest == nullptr) return;
  const float found = format_->largest(to, steps());
  float before = largest_.load();
  while (found > before && !largest_.compare_exchange_weak(before, found)) {
  }
}

int PackedWeight::power() const {
  int exponent = 0;  // largest < 2^exponent
  if (float largest = largest_.load(); largest > 0 && std::isfinite(largest))
    std::frexp(largest, &exponent);
  return std::clamp(15 - exponent, -14, kMaxPower);
}

TableWeight::TableWeight(MatrixSource source)
    : Weight(source.rows(), source.cols, source.dtype, file_bytes(source)),
      source_(std::move(source)) {}

}  // namespace vitrine::cpu
