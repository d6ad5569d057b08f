// CountingDevice: takes the place of a device while a model's memory is planned. Loading onto it
// goes the same way as loading onto the device, so the plan and the load cannot disagree.
#pragma once

#include "kernels/device.h"

namespace vitrine {

// Allocates, packs and copies nothing. Sizes are those of the device it stands for, which must
// outlive it. Buffers have a size and no memory: nothing may read or write them.
class CountingDevice final : public Device {
 public:
  explicit CountingDevice(const Device& real) : real_(real) {}
  std::string name() const override { return "counting"; }
  std::string description() const override { return "counting for " + real_.description(); }
  int threads() const override { return real_.threads(); }
  bool asynchronous() const override { return real_.asynchronous(); }
  bool exact() const override { return real_.exact(); }
  std::optional<std::int64_t> free_memory() const override { return real_.free_memory(); }
  int head_rows() const override { return real_.head_rows(); }
  Peak measure_peak(DType) override { return {}; }
  Result<Buffer> allocate(std::int64_t bytes) override;
  void write(void*, const void*, std::int64_t) override {}
  const void* read(const void* from, std::int64_t, void*) override { return from; }
  void copy(void*, const void*, std::int64_t) override {}
  std::int64_t packed_bytes(DType dtype, std::int64_t rows, std::int64_t cols,
                            WeightUse use) const override {
    return real_.packed_bytes(dtype, rows, cols, use);
  }
  Result<std::unique_ptr<Weight>> pack(const MatrixSource& source, WeightUse use) override;
  Status check_kv(const KvLayout& layout) const override { return real_.check_kv(layout); }
  std::int64_t kv_page_bytes(const KvShape& shape) const override {
    return real_.kv_page_bytes(shape);
  }

 private:
  const Device& real_;
};

}  // namespace vitrine
