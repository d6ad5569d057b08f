// For the op tests: every way to compute that this machine has, and random data.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "kernels/backend.h"
#include "quant/format.h"

namespace vitrine::testing {

inline std::unique_ptr<Backend> make_backend(const std::string& name, const std::string& isa = {},
                                             int threads = 1) {
  auto backend = create_backend(name, {.threads = threads, .isa = isa, .synchronous = true});
  EXPECT_TRUE(backend.ok()) << (backend.ok() ? "" : backend.error().message);
  return std::move(backend).value();
}

inline std::vector<std::string> cpu_isas() {
  std::vector<std::string> isas{"avx2"};
  if (cpu_features().avx512) isas.push_back("avx512");
  if (cpu_features().avx512_vnni) isas.push_back("vnni");
  if (cpu_features().avx512_bf16) isas.push_back("bf16");
  if (cpu_features().amx) isas.push_back("amx");
  return isas;
}

// The GPU, where there is one; every op is waited for.
inline std::unique_ptr<Backend> make_cuda(bool deterministic = false) {
  auto backend = create_backend("cuda", {.deterministic = deterministic, .synchronous = true});
  return backend.ok() ? std::move(backend).value() : nullptr;
}

// Memory that every backend of this machine can use.
inline Buffer shared_memory(std::int64_t bytes) {
  static const std::unique_ptr<Backend> owner = [] {
    auto cuda = make_cuda();
    return cuda ? std::move(cuda) : make_backend("ref");
  }();
  auto memory = owner->allocate_shared(bytes);
  EXPECT_TRUE(memory.ok()) << (memory.ok() ? "" : memory.error().message);
  return std::move(memory).value();
}

// Backends to hold against ref: each instruction set, with one thread and with several; the GPU.
struct Candidate {
  std::string label;
  std::unique_ptr<Backend> backend;
};
inline std::vector<Candidate> candidates() {
  std::vector<Candidate> out;
  for (const std::string& isa : cpu_isas())
    for (int threads : {1, 3})
      out.push_back({isa + "/" + std::to_string(threads), make_backend("cpu", isa, threads)});
  for (bool deterministic : {false, true})
    if (auto cuda = make_cuda(deterministic))
      out.push_back({deterministic ? "cuda/deterministic" : "cuda", std::move(cuda)});
  return out;
}
// The GPU as the engine uses it: ops are queued, and recorded where they repeat.
inline std::vector<Candidate> queueing_candidates() {
  std::vector<Candidate> out;
  for (bool deterministic : {false, true})
    if (auto cuda = create_backend("cuda", {.deterministic = deterministic}); cuda.ok())
      out.push_back(
          {deterministic ? "cuda/queued, deterministic" : "cuda/queued", std::move(cuda).value()});
  return out;
}
inline bool is_cuda(const Candidate& c) { return c.label.rfind("cuda", 0) == 0; }

// Two of a kind that promises a row the same bits in every batch.
struct ExactPair {
  std::string label;
  std::unique_ptr<Backend> one, many;
};
inline std::vector<ExactPair> exact_pairs() {
  std::vector<ExactPair> out;
  for (const std::string& isa : cpu_isas())
    out.push_back({isa, make_backend("cpu", isa, 1), make_backend("cpu", isa, 3)});
  if (auto cuda = make_cuda(true))
    out.push_back({"cuda/deterministic", std::move(cuda), make_cuda(true)});
  return out;
}

// At least `cols` weights, in whole blocks of the format.
inline std::int64_t whole_blocks(const Format& format, std::int64_t cols) {
  return (cols + format.info.block - 1) / format.info.block * format.info.block;
}

// Owns the memory of the tensors of a test.
class Arena {
 public:
  explicit Arena(unsigned seed = 1) : rng_(seed) {}
  Tensor f32(Shape shape, float fill = 0) {
    Tensor t{allocate(shape.elements() + 16), DType::kF32, shape};
    std::fill_n(t.f32(), shape.elements() + 16, fill);
    return t;
  }
  Tensor random(Shape shape, float scale = 1) {
    Tensor t = f32(shape);
    std::normal_distribution<float> normal(0, scale);
    for (std::int64_t i = 0; i < shape.elements(); ++i) t.f32()[i] = normal(rng_);
    return t;
  }
  Tensor i32(const std::vector<std::int32_t>& values) {
    auto n = static_cast<std::int64_t>(values.size());
    Tensor t{allocate(n), DType::kI32, {n}};
    std::copy(values.begin(), values.end(), t.i32());
    return t;
  }
  MatrixSource matrix(const Format& format, std::int64_t rows, std::int64_t cols, float scale = 1) {
    EXPECT_EQ(cols % format.info.block, 0) << format.info.name << ": use whole_blocks()";
    Tensor values = random({rows, cols}, scale);
    auto bytes = std::make_shared<std::vector<std::byte>>(format_bytes(format.info, rows * cols));
    format.encode(values.f32(), rows * cols / format.info.block, bytes->data());
    MatrixSource m{
        .name = "w", .dtype = format.info.dtype, .cols = cols, .row_data = {}, .owner = bytes};
    std::int64_t stride = format_bytes(format.info, cols);
    for (std::int64_t r = 0; r < rows; ++r) m.row_data.push_back(bytes->data() + r * stride);
    return m;
  }
  std::mt19937& rng() { return rng_; }

 private:
  void* allocate(std::int64_t elements) {
    memory_.push_back(shared_memory(elements * 4));
    return memory_.back().data();
  }
  std::mt19937 rng_;
  std::vector<Buffer> memory_;
};

inline float max_difference(const Tensor& a, const Tensor& b) {
  float worst = 0;
  for (std::int64_t i = 0; i < a.shape.elements(); ++i) {
    float d = std::fabs(a.f32()[i] - b.f32()[i]);
    if (!(d <= worst)) worst = d;
  }
  return worst;
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape &&
         std::memcmp(a.data, b.data, static_cast<std::size_t>(a.shape.elements()) * 4) == 0;
}

}  // namespace vitrine::testing
