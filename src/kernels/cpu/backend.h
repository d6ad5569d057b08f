// cpu: AVX2, AVX-512 or AMX as found at run time, on a thread pool of its own.
//
// A product has one arithmetic per (weight type, instruction set), the same at every M:
// arithmetic_of() in packed.h, and the table in docs/lab/accuracy.md.
#pragma once

#include <algorithm>
#include <memory>

#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/packed.h"

namespace vitrine::cpu {

inline Act act_of(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return Act::kSilu;
    case Activation::kGelu:
      return Act::kGelu;
    case Activation::kGeluTanh:
      return Act::kGeluTanh;
    case Activation::kRelu:
      return Act::kRelu;
  }
  return Act::kSilu;
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(Isa isa, int threads);

  std::string name() const override { return "cpu"; }
  std::string description() const override;
  int threads() const override { return pool_.threads(); }
  Peak measure_peak(DType weights) override;
  Result<Buffer> allocate(std::int64_t bytes) override;
  void write(void* to, const void* from, std::int64_t bytes) override;
  void copy(void* to, const void* from, std::int64_t bytes) override { write(to, from, bytes); }
  const void* read(const void* from, std::int64_t, void*) override { return from; }
  std::int64_t packed_bytes(DType dtype, std::int64_t rows, std::int64_t cols,
                            WeightUse use) const override;
  Result<std::unique_ptr<Weight>> pack(const MatrixSource& source, WeightUse use) override;
  Status check_kv(const KvLayout& layout) const override;
  std::int64_t kv_page_bytes(const KvShape& shape) const override;

 protected:
  void embed_(Tensor out, const Weight& table, Tensor ids, float scale) override;
  void matmul_(Tensor out, Tensor x, const Weight& w, Tensor bias) override;
  void rms_norm_(Tensor out, Tensor x, Tensor w, float eps) override;
  void layer_norm_(Tensor out, Tensor x, Tensor w, Tensor b, float eps) override;
  void rope_table_(Tensor table, Tensor positions, Tensor inv_freq, float scale) override;
  void rope_(Tensor x, Tensor table) override;
  void store_kv_(Tensor k, Tensor v, const KvCache& cache, const KvIndex& index) override;
  void attention_(Tensor out, Tensor q, const KvCache& cache, const KvIndex& index,
                  const AttentionParams& params) override;
  void add_(Tensor out, Tensor a, Tensor b) override;
  void activate_(Tensor x, Activation activation) override;
  void glu_(Tensor out, Tensor gate, Tensor up, Activation activation) override;
  void softcap_(Tensor x, float cap) override;
  void gather_rows_(Tensor out, Tensor x, Tensor rows) override;
  void add_rms_norm_(Tensor out, Tensor residual, Tensor delta, Tensor w, float eps) override;
  void matmul_group_(std::span<const MatmulPart> parts, Tensor x, const InputNorm& norm) override;
  void matmul_add_(Tensor out, Tensor scratch, Tensor x, const Weight& w, Tensor bias) override;
  void matmul_glu_(Tensor out, Tensor scratch, Tensor x, const InputNorm& norm, const Weight& gate,
                   Tensor gate_bias, const Weight& up, Tensor up_bias,
                   Activation activation) override;

 private:
  // k that a thread decodes at a time: a block of the kernels with its padding, or of any format.
  static constexpr int kUnpackedK = std::max(kBlockK + kStep, kMaxBlock);
  // Memory of one thread, for all ops.
  struct Worker {
    Buffer memory;
    float* acc = nullptr;        // kAmxMaxPanels * kMaxRows * kPanel
    float* unpacked = nullptr;   // kUnpackedK * kPanel
    float* attention = nullptr;  // attention_scratch()
  };
  // What products with one input have in common.
  struct Shared {
    int rows, panels;  // at a time, at most
    int parts;         // in how many numbers of bf16 an activation is taken
    int power;         // PackedWeight::power() of all
  };
  Shared shared_of(std::span<const MatmulPart> parts, std::int64_t rows) const;
  // Activations in the form that the weight's arithmetic takes.
  // In two parts: M rows of the first, then M of what it leaves.
  void prepare(const float* x, std::int64_t M, const PackedWeight& w, const Shared& shared);
  // out = products, or out += products.
  void multiply_all(std::span<const MatmulPart> parts, Tensor x, bool add);
  // Results of `count` panels to acc (count, round_rows(M), kPanel).
  void multiply(Worker& worker, const PackedWeight& w, int power, std::int64_t first, int count,
                const float* x, int M, float* acc);
  // The same panels of two matrices, those of `b` behind those of `a`.
  void multiply_both(Worker& worker, const PackedWeight& a, const PackedWeight& b, int power,
                     std::int64_t first, int count, const float* x, int M);
  std::int64_t panels_at_once(const PackedWeight& w, int most) const;
  template <typename F>
  static void over_results(const PackedWeight& w, std::int64_t first, int count, std::int64_t M,
                           int parts, float* out, F&& f);
  // One panel of a weight whose rows are decoded when used.
  void multiply_rows(Worker& worker, const PackedWeight& w, std::int64_t p, const float* x, int M,
                     float* acc);
  // f(begin, end) or f(begin, end, worker) over rows, on the pool when there is enough work for it
  // to pay.
  template <typename F>
  void over_rows(std::int64_t rows, std::int64_t work_per_row, F&& f);

  Isa isa_;
  const KernelTable& k_;
  ThreadPool pool_;
  std::vector<Worker> workers_;
  // Grown by pack() for the widest matrix, so that no product allocates.
  Buffer prepared_;  // activations of as many rows as a call takes
  Buffer rests_;     // a row per thread: what rounding it to bf16 took away
  std::int64_t prepared_steps_ = 0;
};

}  // namespace vitrine::cpu
