// ref: the specification of every op, in plain C++ and fp32. Slow on purpose: no blocking, no SIMD,
// no threads; ops may allocate. A page holds K (K,P,D) and then V (K,P,Dv), each in its format.
#pragma once

#include "kernels/backend.h"

namespace vitrine::ref {

// Rows as the file has them.
class RowWeight final : public Weight {
 public:
  explicit RowWeight(MatrixSource source);
  void decode_row(std::int64_t row, float* out) const;

 private:
  MatrixSource source_;
};

class RefBackend : public Backend {
 public:
  std::string name() const override { return "ref"; }
  std::string description() const override { return "ref (plain C++, fp32, one thread)"; }
  Peak measure_peak(DType weights) override;
  Result<Buffer> allocate(std::int64_t bytes) override;
  void write(void* to, const void* from, std::int64_t bytes) override;
  void copy(void* to, const void* from, std::int64_t bytes) override { write(to, from, bytes); }
  const void* read(const void* from, std::int64_t, void*) override { return from; }
  std::int64_t packed_bytes(DType, std::int64_t, std::int64_t, WeightUse) const override {
    return 0;
  }
  Result<std::unique_ptr<Weight>> pack(const MatrixSource& source, WeightUse use) override;
  Status check_kv(const KvLayout& layout) const override { return check_kv_formats(layout); }
  std::int64_t kv_page_bytes(const KvShape& shape) const override {
    return plain_page_bytes(shape);
  }

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
  void draw_(DrawnRow* drawn, Tensor last, const DrawRow* rows, Tensor logits,
             bool greedy) override;
};

}  // namespace vitrine::ref
