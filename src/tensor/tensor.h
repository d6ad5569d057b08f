// Tensor: a view of contiguous elements in some backend's memory. Owns nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/check.h"
#include "tensor/dtype.h"

namespace vitrine {

// Up to four dimensions, outermost first.
class Shape {
 public:
  static constexpr int kMaxRank = 4;
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) {
    VT_CHECK(dims.size() <= kMaxRank);
    for (std::int64_t d : dims) push_back(d);
  }
  void push_back(std::int64_t dim) {
    VT_CHECK(rank_ < kMaxRank);
    dims_[rank_++] = dim;
  }
  int rank() const { return rank_; }
  std::int64_t operator[](int i) const { return dims_[i]; }
  std::int64_t& operator[](int i) { return dims_[i]; }
  // Product of the dimensions; 1 for rank 0. Callers have checked that it does not overflow.
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= dims_[i];
    return n;
  }
  bool operator==(const Shape& o) const { return rank_ == o.rank_ && dims_ == o.dims_; }
  std::string to_string() const {
    std::string s = "[";
    for (int i = 0; i < rank_; ++i) s += (i ? ", " : "") + std::to_string(dims_[i]);
    return s + "]";
  }

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;

  std::int64_t dim(int i) const { return shape[i]; }
  bool defined() const { return data != nullptr; }
  float* f32() const {
    VT_CHECK(dtype == DType::kF32);
    return static_cast<float*>(data);
  }
  std::int32_t* i32() const {
    VT_CHECK(dtype == DType::kI32);
    return static_cast<std::int32_t*>(data);
  }
  // The first n rows (outermost dimension); f32 and i32 only, as both have four-byte elements.
  Tensor rows(std::int64_t n) const { return rows(0, n); }
  Tensor rows(std::int64_t first, std::int64_t n) const {
    VT_CHECK(first >= 0 && n >= 0 && first + n <= shape[0], "rows {}+{} of {}", first, n, shape[0]);
    VT_CHECK(dtype == DType::kF32 || dtype == DType::kI32);
    Tensor t = *this;
    std::int64_t stride = shape[0] == 0 ? 0 : shape.elements() / shape[0];
    t.data = static_cast<std::byte*>(data) + first * stride * 4;
    t.shape[0] = n;
    return t;
  }
  // The same elements under another shape.
  Tensor view(Shape other) const {
    VT_CHECK(other.elements() == shape.elements(), "{} as {}", shape.to_string(),
             other.to_string());
    Tensor t = *this;
    t.shape = other;
    return t;
  }
};

}  // namespace vitrine
