// The ops of the cuda backend: each names itself, for messages, and queues its kernels.
#include <array>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_lone.h"
#include "kernels/cuda/backend.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/weight.h"

namespace vitrine::cuda {
namespace {

float* pointer(const Tensor& t) { return t.defined() ? t.f32() : nullptr; }

}  // namespace

class CudaBackend::Op {
 public:
  Op(CudaBackend& b, const char* name, const Tensor& t) : b_(b) {
    enter(b_.c_);
    begin_op(b_.c_);
    b_.c_.op = name;
    for (int i = 0; i < 4; ++i) b_.c_.shape[i] = i < t.shape.rank() ? t.shape[i] : 0;
  }
  ~Op() {
    if (b_.synchronous_) check(b_.c_, cudaStreamSynchronize(b_.c_.stream), "running it");
  }

 private:
  CudaBackend& b_;
};

void CudaBackend::embed_(Tensor out, const Weight& table, Tensor ids, float scale) {
  Op op(*this, "embed", out);
  cuda::embed(c_, out.f32(), static_cast<const CudaTable&>(table).data(), table.dtype(),
              table.cols(), ids.i32(), out.dim(0), scale);
}

void CudaBackend::matmul_(Tensor out, Tensor x, const Weight& w, Tensor bias) {
  Op op(*this, "matmul", out);
  cuda::matmul(c_, out.f32(), x.f32(), x.dim(0), static_cast<const CudaWeight&>(w), pointer(bias));
}

void CudaBackend::matmul_group_(std::span<const MatmulPart> parts, Tensor x,
                                const InputNorm& norm) {
  Op op(*this, "matmul_group", x);
  std::array<MatmulOutput, kMaxOutputs> outputs;
  VT_CHECK(parts.size() <= outputs.size(), "matmul_group: {} products at once", parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    outputs[i] = {parts[i].out.f32(), static_cast<const CudaWeight*>(parts[i].w),
                  pointer(parts[i].bias), nullptr};
  cuda::matmul_group(c_, {outputs.data(), parts.size()},
                     {x.f32(), x.dim(0), pointer(norm.w), norm.eps});
}

void CudaBackend::matmul_glu_(Tensor out, Tensor scratch, Tensor x, const InputNorm& norm,
                              const Weight& gate, Tensor gate_bias, const Weight& up,
                              Tensor up_bias, Activation activation) {
  const auto &g = static_cast<const CudaWeight&>(gate), &u = static_cast<const CudaWeight&>(up);
  if (gate_bias.defined() || up_bias.defined() || &g.format() != &u.format())
    return Backend::matmul_glu_(out, scratch, x, norm, gate, gate_bias, up, up_bias, activation);
  Op op(*this, "matmul_glu", out);
  cuda::matmul_glu(c_, out.f32(), {x.f32(), x.dim(0), pointer(norm.w), norm.eps}, g, u, activation);
}

void CudaBackend::matmul_add_(Tensor out, Tensor, Tensor x, const Weight& w, Tensor bias) {
  Op op(*this, "matmul_add", out);
  MatmulOutput output{out.f32(), static_cast<const CudaWeight*>(&w), pointer(bias), out.f32()};
  cuda::matmul_group(c_, {&output, 1}, {x.f32(), x.dim(0), nullptr, 0});
}

RopeStore CudaBackend::rope_store(Tensor q, Tensor k, Tensor v, const HeadNorms& norms,
                                  Tensor table) {
  RopeStore r{q.f32(), k.f32(), v.f32(), q.dim(0), q.dim(1)};
  r.q_norm = pointer(norms.q), r.k_norm = pointer(norms.k), r.eps = norms.eps;
  r.table = pointer(table), r.half = table.defined() ? table.dim(1) : 0;
  return r;
}

void CudaBackend::rope_store_kv_(Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table,
                                 const KvCache& cache, const KvIndex& index) {
  Op op(*this, "rope_store_kv", q);
  cuda::rope_store_kv(c_, rope_store(q, k, v, norms, table), cache, index.slots.i32());
}

void CudaBackend::attend_(Tensor out, Tensor q, Tensor k, Tensor v, const HeadNorms& norms,
                          Tensor table, const KvCache& cache, const KvIndex& index,
                          const AttentionParams& params) {
  Op op(*this, "attend", q);
  if (!lone_attention(c_, out.f32(), rope_store(q, k, v, norms, table), cache, index, params))
    Backend::attend_(out, q, k, v, norms, table, cache, index, params);
}

void CudaBackend::rms_norm_(Tensor out, Tensor x, Tensor w, float eps) {
  Op op(*this, "rms_norm", out);
  cuda::rms_norm(c_, out.f32(), x.f32(), nullptr, w.f32(), x.dim(0), x.dim(1), eps);
}

void CudaBackend::gather_rms_norm_(Tensor out, Tensor x, Tensor rows, Tensor w, float eps) {
  Op op(*this, "gather_rms_norm", out);
  cuda::rms_norm(c_, out.f32(), x.f32(), rows.i32(), w.f32(), out.dim(0), out.dim(1), eps);
}

void CudaBackend::add_rms_norm_(Tensor out, Tensor residual, Tensor delta, Tensor w, float eps) {
  Op op(*this, "add_rms_norm", out);
  cuda::add_rms_norm(c_, out.f32(), residual.f32(), delta.f32(), w.f32(), out.dim(0), out.dim(1),
                     eps);
}

void CudaBackend::layer_norm_(Tensor out, Tensor x, Tensor w, Tensor b, float eps) {
  Op op(*this, "layer_norm", out);
  cuda::layer_norm(c_, out.f32(), x.f32(), w.f32(), pointer(b), x.dim(0), x.dim(1), eps);
}

void CudaBackend::rope_table_(Tensor table, Tensor positions, Tensor inv_freq, float scale) {
  Op op(*this, "rope_table", table);
  cuda::rope_table(c_, table.f32(), positions.i32(), inv_freq.f32(), table.dim(0), table.dim(1),
                   scale);
}

void CudaBackend::rope_(Tensor x, Tensor table) {
  Op op(*this, "rope", x);
  cuda::rope(c_, x.f32(), table.f32(), x.dim(0), x.dim(1), x.dim(2), table.dim(1));
}

void CudaBackend::store_kv_(Tensor k, Tensor v, const KvCache& cache, const KvIndex& index) {
  Op op(*this, "store_kv", k);
  cuda::store_kv(c_, k.f32(), v.f32(), k.dim(0), cache, index.slots.i32());
}

void CudaBackend::attention_(Tensor out, Tensor q, const KvCache& cache, const KvIndex& index,
                             const AttentionParams& params) {
  Op op(*this, "attention", q);
  cuda::attention(c_, out.f32(), q.f32(), q.dim(0), q.dim(1), cache, index, params);
}

void CudaBackend::add_(Tensor out, Tensor a, Tensor b) {
  Op op(*this, "add", out);
  cuda::add(c_, out.f32(), a.f32(), b.f32(), out.shape.elements());
}

void CudaBackend::activate_(Tensor x, Activation activation) {
  Op op(*this, "activate", x);
  cuda::activate(c_, x.f32(), x.shape.elements(), activation);
}

void CudaBackend::glu_(Tensor out, Tensor gate, Tensor up, Activation activation) {
  Op op(*this, "glu", out);
  cuda::glu(c_, out.f32(), gate.f32(), up.f32(), out.shape.elements(), activation);
}

void CudaBackend::softcap_(Tensor x, float cap) {
  Op op(*this, "softcap", x);
  cuda::softcap(c_, x.f32(), x.shape.elements(), cap);
}

void CudaBackend::gather_rows_(Tensor out, Tensor x, Tensor rows) {
  Op op(*this, "gather_rows", out);
  cuda::gather_rows(c_, out.f32(), x.f32(), rows.i32(), out.dim(0), out.dim(1));
}

void CudaBackend::draw_(DrawnRow* drawn, Tensor last, const DrawRow* rows, Tensor logits,
                        bool greedy) {
  Op op(*this, "draw", logits);
  cuda::draw(c_, drawn, last.i32(), rows, logits.f32(), logits.dim(0), logits.dim(1), greedy);
}

}  // namespace vitrine::cuda
