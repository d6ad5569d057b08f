#include "kernels/ops.h"

#include <chrono>

#include "base/check.h"

namespace vitrine {

// One call of a public op: its time and its work. What an op calls itself counts as its own.
class Ops::Call {
 public:
  Call(Ops& ops, const char* op) : ops_(ops), op_(op), outermost_(ops.depth_++ == 0) {
    if (outermost_ && ops_.timing_) start_ = std::chrono::steady_clock::now();
  }
  ~Call() {
    --ops_.depth_;
    if (!outermost_ || !ops_.timing_) return;
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    for (OpTime& t : ops_.op_times_)
      if (t.op == op_) {
        ++t.calls, t.seconds += seconds;
        return;
      }
    ops_.op_times_.push_back({op_, 1, seconds});
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // The op multiplies x with w.
  void product(const Tensor& x, const Weight& w) {
    if (!outermost_) return;
    ops_.add_work({2.0 * static_cast<double>(x.dim(0)) * static_cast<double>(w.rows()) *
                       static_cast<double>(w.cols()),
                   w.bytes()});
  }

 private:
  Ops& ops_;
  const char* op_;
  bool outermost_;
  std::chrono::steady_clock::time_point start_;
};

namespace {

// Checks t against `dims` (-1: anything) and prints op, tensor and both shapes when they differ.
void expect(const char* op, const char* what, const Tensor& t, DType dtype, Shape dims) {
  bool same = t.shape.rank() == dims.rank() && t.dtype == dtype && t.defined();
  for (int i = 0; same && i < dims.rank(); ++i) same = dims[i] < 0 || t.shape[i] == dims[i];
  VT_CHECK(same, "{}: {} is {} of type {}, expected {} of type {}", op, what, t.shape.to_string(),
           static_cast<int>(t.dtype), dims.to_string(), static_cast<int>(dtype));
}

void expect_f32(const char* op, const char* what, const Tensor& t, Shape dims) {
  expect(op, what, t, DType::kF32, dims);
}

void expect_i32(const char* op, const char* what, const Tensor& t, Shape dims) {
  expect(op, what, t, DType::kI32, dims);
}

void expect_norm(const char* op, const InputNorm& norm, const Tensor& x) {
  if (!norm.w.defined()) return;
  expect_f32(op, "norm", norm.w, {x.dim(1)});
  expect_f32(op, "the norm's scratch", norm.scratch, x.shape);
}

void expect_index(const char* op, std::int64_t T, const KvIndex& index) {
  expect_i32(op, "positions", index.positions, {T});
  expect_i32(op, "row_offsets", index.row_offsets, {-1});
  expect_i32(op, "slots", index.slots, {T});
  expect_i32(op, "block_table", index.block_table, {index.row_offsets.dim(0) - 1, -1});
}

}  // namespace

void Ops::embed(Tensor out, const Weight& table, Tensor ids, float scale) {
  expect_f32("embed", "out", out, {-1, table.cols()});
  expect_i32("embed", "ids", ids, {out.dim(0)});
  Call call(*this, "embed");
  embed_(out, table, ids, scale);
}

void Ops::matmul(Tensor out, Tensor x, const Weight& w, Tensor bias) {
  expect_f32("matmul", "x", x, {-1, w.cols()});
  expect_f32("matmul", "out", out, {x.dim(0), w.rows()});
  if (bias.defined()) expect_f32("matmul", "bias", bias, {w.rows()});
  Call call(*this, "matmul");
  call.product(x, w);
  matmul_(out, x, w, bias);
}

void Ops::rms_norm(Tensor out, Tensor x, Tensor w, float eps) {
  expect_f32("rms_norm", "x", x, {-1, -1});
  expect_f32("rms_norm", "out", out, x.shape);
  expect_f32("rms_norm", "w", w, {x.dim(1)});
  Call call(*this, "rms_norm");
  rms_norm_(out, x, w, eps);
}

void Ops::layer_norm(Tensor out, Tensor x, Tensor w, Tensor b, float eps) {
  expect_f32("layer_norm", "x", x, {-1, -1});
  expect_f32("layer_norm", "out", out, x.shape);
  expect_f32("layer_norm", "w", w, {x.dim(1)});
  if (b.defined()) expect_f32("layer_norm", "b", b, {x.dim(1)});
  Call call(*this, "layer_norm");
  layer_norm_(out, x, w, b, eps);
}

void Ops::rope_table(Tensor table, Tensor positions, Tensor inv_freq, float scale) {
  expect_f32("rope_table", "inv_freq", inv_freq, {-1});
  expect_f32("rope_table", "table", table, {-1, inv_freq.dim(0), 2});
  expect_i32("rope_table", "positions", positions, {table.dim(0)});
  Call call(*this, "rope_table");
  rope_table_(table, positions, inv_freq, scale);
}

void Ops::rope(Tensor x, Tensor table) {
  expect_f32("rope", "x", x, {-1, -1, -1});
  expect_f32("rope", "table", table, {x.dim(0), -1, 2});
  VT_CHECK(2 * table.dim(1) <= x.dim(2), "rope: {} rotary dims in heads of {}", 2 * table.dim(1),
           x.dim(2));
  Call call(*this, "rope");
  rope_(x, table);
}

void Ops::store_kv(Tensor k, Tensor v, const KvCache& cache, const KvIndex& index) {
  const KvLayout& l = cache.shape.layout;
  expect_f32("store_kv", "k", k, {index.positions.dim(0), l.heads, l.k.width});
  expect_f32("store_kv", "v", v, {index.positions.dim(0), l.heads, l.v.width});
  expect_index("store_kv", k.dim(0), index);
  Call call(*this, "store_kv");
  store_kv_(k, v, cache, index);
}

void Ops::attention(Tensor out, Tensor q, const KvCache& cache, const KvIndex& index,
                    const AttentionParams& params) {
  const KvLayout& l = cache.shape.layout;
  expect_f32("attention", "q", q, {-1, -1, l.k.width});
  expect_f32("attention", "out", out, {q.dim(0), q.dim(1), l.v.width});
  expect_index("attention", q.dim(0), index);
  VT_CHECK(q.dim(1) % l.heads == 0, "attention: {} heads over {} kv heads", q.dim(1), l.heads);
  Call call(*this, "attention");
  attention_(out, q, cache, index, params);
}

void Ops::add(Tensor out, Tensor a, Tensor b) {
  expect_f32("add", "a", a, out.shape);
  expect_f32("add", "b", b, out.shape);
  Call call(*this, "add");
  add_(out, a, b);
}

void Ops::activate(Tensor x, Activation activation) {
  expect_f32("activate", "x", x, {-1, -1});
  Call call(*this, "activate");
  activate_(x, activation);
}

void Ops::glu(Tensor out, Tensor gate, Tensor up, Activation activation) {
  expect_f32("glu", "gate", gate, out.shape);
  expect_f32("glu", "up", up, out.shape);
  Call call(*this, "glu");
  glu_(out, gate, up, activation);
}

void Ops::softcap(Tensor x, float cap) {
  expect_f32("softcap", "x", x, {-1, -1});
  Call call(*this, "softcap");
  softcap_(x, cap);
}

void Ops::gather_rows(Tensor out, Tensor x, Tensor rows) {
  expect_f32("gather_rows", "x", x, {-1, -1});
  expect_f32("gather_rows", "out", out, {-1, x.dim(1)});
  expect_i32("gather_rows", "rows", rows, {out.dim(0)});
  Call call(*this, "gather_rows");
  gather_rows_(out, x, rows);
}

void Ops::add_rms_norm(Tensor out, Tensor residual, Tensor delta, Tensor w, float eps) {
  expect_f32("add_rms_norm", "residual", residual, {-1, -1});
  expect_f32("add_rms_norm", "delta", delta, residual.shape);
  expect_f32("add_rms_norm", "out", out, residual.shape);
  expect_f32("add_rms_norm", "w", w, {residual.dim(1)});
  Call call(*this, "add_rms_norm");
  add_rms_norm_(out, residual, delta, w, eps);
}

void Ops::add_rms_norm_(Tensor out, Tensor residual, Tensor delta, Tensor w, float eps) {
  add(residual, residual, delta);
  rms_norm(out, residual, w, eps);
}

void Ops::gather_rms_norm(Tensor out, Tensor x, Tensor rows, Tensor w, float eps) {
  expect_f32("gather_rms_norm", "x", x, {-1, -1});
  expect_f32("gather_rms_norm", "out", out, {-1, x.dim(1)});
  expect_i32("gather_rms_norm", "rows", rows, {out.dim(0)});
  expect_f32("gather_rms_norm", "w", w, {x.dim(1)});
  Call call(*this, "gather_rms_norm");
  gather_rms_norm_(out, x, rows, w, eps);
}

void Ops::gather_rms_norm_(Tensor out, Tensor x, Tensor rows, Tensor w, float eps) {
  gather_rows(out, x, rows);
  rms_norm(out, out, w, eps);
}

void Ops::matmul_group(std::span<const MatmulPart> parts, Tensor x, const InputNorm& norm) {
  for (const MatmulPart& p : parts) {
    expect_f32("matmul_group", "x", x, {-1, p.w->cols()});
    expect_f32("matmul_group", "out", p.out, {x.dim(0), p.w->rows()});
    if (p.bias.defined()) expect_f32("matmul_group", "bias", p.bias, {p.w->rows()});
  }
  expect_norm("matmul_group", norm, x);
  Call call(*this, "matmul_group");
  for (const MatmulPart& p : parts) call.product(x, *p.w);
  matmul_group_(parts, x, norm);
}

void Ops::matmul_group_(std::span<const MatmulPart> parts, Tensor x, const InputNorm& norm) {
  if (norm.w.defined()) rms_norm(norm.scratch, x, norm.w, norm.eps), x = norm.scratch;
  for (const MatmulPart& p : parts) matmul(p.out, x, *p.w, p.bias);
}

void Ops::matmul_glu(Tensor out, Tensor scratch, Tensor x, const InputNorm& norm,
                     const Weight& gate, Tensor gate_bias, const Weight& up, Tensor up_bias,
                     Activation activation) {
  expect_f32("matmul_glu", "x", x, {-1, gate.cols()});
  expect_f32("matmul_glu", "out", out, {x.dim(0), gate.rows()});
  expect_f32("matmul_glu", "scratch", scratch, out.shape);
  expect_norm("matmul_glu", norm, x);
  VT_CHECK(gate.rows() == up.rows() && gate.cols() == up.cols(),
           "matmul_glu: gate is {} x {}, up is {} x {}", gate.rows(), gate.cols(), up.rows(),
           up.cols());
  Call call(*this, "matmul_glu");
  call.product(x, gate);
  call.product(x, up);
  matmul_glu_(out, scratch, x, norm, gate, gate_bias, up, up_bias, activation);
}

void Ops::matmul_glu_(Tensor out, Tensor scratch, Tensor x, const InputNorm& norm,
                      const Weight& gate, Tensor gate_bias, const Weight& up, Tensor up_bias,
                      Activation activation) {
  MatmulPart parts[] = {{out, &gate, gate_bias}, {scratch, &up, up_bias}};
  matmul_group(parts, x, norm);
  glu(out, out, scratch, activation);
}

void Ops::matmul_add(Tensor out, Tensor scratch, Tensor x, const Weight& w, Tensor bias) {
  expect_f32("matmul_add", "x", x, {-1, w.cols()});
  expect_f32("matmul_add", "out", out, {x.dim(0), w.rows()});
  expect_f32("matmul_add", "scratch", scratch, out.shape);
  if (bias.defined()) expect_f32("matmul_add", "bias", bias, {w.rows()});
  Call call(*this, "matmul_add");
  call.product(x, w);
  matmul_add_(out, scratch, x, w, bias);
}

void Ops::matmul_add_(Tensor out, Tensor scratch, Tensor x, const Weight& w, Tensor bias) {
  matmul(scratch, x, w, bias);
  add(out, out, scratch);
}

namespace {

void expect_heads(const char* op, Tensor q, Tensor k, Tensor v, const HeadNorms& norms,
                  Tensor table, const KvCache& cache, const KvIndex& index) {
  const KvLayout& l = cache.shape.layout;
  expect_f32(op, "q", q, {-1, -1, l.k.width});
  expect_f32(op, "k", k, {q.dim(0), l.heads, l.k.width});
  expect_f32(op, "v", v, {q.dim(0), l.heads, l.v.width});
  expect_index(op, q.dim(0), index);
  if (table.defined()) {
    expect_f32(op, "table", table, {q.dim(0), -1, 2});
    VT_CHECK(2 * table.dim(1) <= l.k.width, "{}: {} rotary dims in heads of {}", op,
             2 * table.dim(1), l.k.width);
  }
  for (const Tensor* norm : {&norms.q, &norms.k})
    if (norm->defined()) expect_f32(op, "norm", *norm, {l.k.width});
}

}  // namespace

void Ops::rope_store_kv(Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table,
                        const KvCache& cache, const KvIndex& index) {
  expect_heads("rope_store_kv", q, k, v, norms, table, cache, index);
  Call call(*this, "rope_store_kv");
  rope_store_kv_(q, k, v, norms, table, cache, index);
}

void Ops::attend(Tensor out, Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table,
                 const KvCache& cache, const KvIndex& index, const AttentionParams& params) {
  expect_heads("attend", q, k, v, norms, table, cache, index);
  const KvLayout& l = cache.shape.layout;
  expect_f32("attend", "out", out, {q.dim(0), q.dim(1), l.v.width});
  VT_CHECK(q.dim(1) % l.heads == 0, "attend: {} heads over {} kv heads", q.dim(1), l.heads);
  Call call(*this, "attend");
  attend_(out, q, k, v, norms, table, cache, index, params);
}

void Ops::attend_(Tensor out, Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table,
                  const KvCache& cache, const KvIndex& index, const AttentionParams& params) {
  rope_store_kv(q, k, v, norms, table, cache, index);
  attention(out, q, cache, index, params);
}

void Ops::rope_store_kv_(Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table,
                         const KvCache& cache, const KvIndex& index) {
  auto norm_heads = [&](const Tensor& w, const Tensor& x) {
    if (!w.defined()) return;
    Tensor heads = x.view({x.dim(0) * x.dim(1), x.dim(2)});
    rms_norm(heads, heads, w, norms.eps);
  };
  norm_heads(norms.q, q);
  norm_heads(norms.k, k);
  if (table.defined()) {
    rope(q, table);
    rope(k, table);
  }
  store_kv(k, v, cache, index);
}

void Ops::feed_from(Tensor last) {
  expect_i32("feed_from", "last", last, {-1});
  feed_from_(last);
}

void Ops::draw(DrawnRow* drawn, Tensor last, const DrawRow* rows, Tensor logits, bool greedy) {
  expect_i32("draw", "last", last, {-1});
  expect_f32("draw", "logits", logits, {-1, -1});
  Call call(*this, "draw");
  draw_(drawn, last, rows, logits, greedy);
}

void Ops::feed_from_(Tensor) { VT_CHECK(false, "feed_from: this backend keeps no tokens"); }

void Ops::draw_(DrawnRow*, Tensor, const DrawRow*, Tensor, bool) {
  VT_CHECK(false, "draw: this backend does not draw");
}

}  // namespace vitrine
