#include "kernels/backend.h"

#include <algorithm>
#include <chrono>

#include "kernels/host_memory.h"

namespace vitrine {

// Adds the time of one call to its op; what an op calls itself counts as its own.
class Backend::Timed {
 public:
  Timed(Backend& backend, const char* op) : b_(backend), op_(op) {
    on_ = b_.timing_ && b_.depth_++ == 0;
    if (on_) start_ = std::chrono::steady_clock::now();
  }
  ~Timed() {
    if (b_.timing_) --b_.depth_;
    if (!on_) return;
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    for (OpTime& t : b_.op_times_)
      if (t.op == op_) {
        ++t.calls, t.seconds += seconds;
        return;
      }
    b_.op_times_.push_back({op_, 1, seconds});
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Backend& b_;
  const char* op_;
  bool on_;
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

std::optional<std::int64_t> Backend::free_memory() const { return free_host_memory(); }

void Backend::copy_kv_page(const KvCache& cache, std::int64_t from, std::int64_t to) {
  VT_CHECK(from >= 0 && from < cache.n_pages && to >= 0 && to < cache.n_pages && from != to,
           "copy_kv_page: page {} to {} of {}", from, to, cache.n_pages);
  std::int64_t bytes = kv_page_bytes(cache.shape);
  copy(cache.data + to * bytes, cache.data + from * bytes, bytes);
}

void Backend::embed(Tensor out, const Weight& table, Tensor ids, float scale) {
  expect_f32("embed", "out", out, {-1, table.cols()});
  expect_i32("embed", "ids", ids, {out.dim(0)});
  Timed timed(*this, "embed");
  embed_(out, table, ids, scale);
}

void Backend::matmul(Tensor out, Tensor x, const Weight& w, Tensor bias) {
  expect_f32("matmul", "x", x, {-1, w.cols()});
  expect_f32("matmul", "out", out, {x.dim(0), w.rows()});
  if (bias.defined()) expect_f32("matmul", "bias", bias, {w.rows()});
  Timed timed(*this, "matmul");
  matmul_(out, x, w, bias);
}

void Backend::rms_norm(Tensor out, Tensor x, Tensor w, float eps) {
  expect_f32("rms_norm", "x", x, {-1, -1});
  expect_f32("rms_norm", "out", out, x.shape);
  expect_f32("rms_norm", "w", w, {x.dim(1)});
  Timed timed(*this, "rms_norm");
  rms_norm_(out, x, w, eps);
}

void Backend::layer_norm(Tensor out, Tensor x, Tensor w, Tensor b, float eps) {
  expect_f32("layer_norm", "x", x, {-1, -1});
  expect_f32("layer_norm", "out", out, x.shape);
  expect_f32("layer_norm", "w", w, {x.dim(1)});
  if (b.defined()) expect_f32("layer_norm", "b", b, {x.dim(1)});
  Timed timed(*this, "layer_norm");
  layer_norm_(out, x, w, b, eps);
}

void Backend::rope_table(Tensor table, Tensor positions, Tensor inv_freq, float scale) {
  expect_f32("rope_table", "inv_freq", inv_freq, {-1});
  expect_f32("rope_table", "table", table, {-1, inv_freq.dim(0), 2});
  expect_i32("rope_table", "positions", positions, {table.dim(0)});
  Timed timed(*this, "rope_table");
  rope_table_(table, positions, inv_freq, scale);
}

void Backend::rope(Tensor x, Tensor table) {
  expect_f32("rope", "x", x, {-1, -1, -1});
  expect_f32("rope", "table", table, {x.dim(0), -1, 2});
  VT_CHECK(2 * table.dim(1) <= x.dim(2), "rope: {} rotary dims in heads of {}", 2 * table.dim(1),
           x.dim(2));
  Timed timed(*this, "rope");
  rope_(x, table);
}

void Backend::store_kv(Tensor k, Tensor v, const KvCache& cache, const KvIndex& index) {
  Shape shape{index.positions.dim(0), cache.shape.kv_heads, cache.shape.head_dim};
  expect_f32("store_kv", "k", k, shape);
  expect_f32("store_kv", "v", v, shape);
  expect_index("store_kv", k.dim(0), index);
  Timed timed(*this, "store_kv");
  store_kv_(k, v, cache, index);
}

void Backend::attention(Tensor out, Tensor q, const KvCache& cache, const KvIndex& index,
                        const AttentionParams& params) {
  expect_f32("attention", "q", q, {-1, -1, cache.shape.head_dim});
  expect_f32("attention", "out", out, q.shape);
  expect_index("attention", q.dim(0), index);
  VT_CHECK(q.dim(1) % cache.shape.kv_heads == 0, "attention: {} heads over {} kv heads", q.dim(1),
           cache.shape.kv_heads);
  Timed timed(*this, "attention");
  attention_(out, q, cache, index, params);
}

void Backend::add(Tensor out, Tensor a, Tensor b) {
  expect_f32("add", "a", a, out.shape);
  expect_f32("add", "b", b, out.shape);
  Timed timed(*this, "add");
  add_(out, a, b);
}

void Backend::activate(Tensor x, Activation activation) {
  expect_f32("activate", "x", x, {-1, -1});
  Timed timed(*this, "activate");
  activate_(x, activation);
}

void Backend::glu(Tensor out, Tensor gate, Tensor up, Activation activation) {
  expect_f32("glu", "gate", gate, out.shape);
  expect_f32("glu", "up", up, out.shape);
  Timed timed(*this, "glu");
  glu_(out, gate, up, activation);
}

void Backend::softcap(Tensor x, float cap) {
  expect_f32("softcap", "x", x, {-1, -1});
  Timed timed(*this, "softcap");
  softcap_(x, cap);
}

void Backend::gather_rows(Tensor out, Tensor x, Tensor rows) {
  expect_f32("gather_rows", "x", x, {-1, -1});
  expect_f32("gather_rows", "out", out, {-1, x.dim(1)});
  expect_i32("gather_rows", "rows", rows, {out.dim(0)});
  Timed timed(*this, "gather_rows");
  gather_rows_(out, x, rows);
}

void Backend::add_rms_norm(Tensor out, Tensor residual, Tensor delta, Tensor w, float eps) {
  expect_f32("add_rms_norm", "residual", residual, {-1, -1});
  expect_f32("add_rms_norm", "delta", delta, residual.shape);
  expect_f32("add_rms_norm", "out", out, residual.shape);
  expect_f32("add_rms_norm", "w", w, {residual.dim(1)});
  Timed timed(*this, "add_rms_norm");
  add_rms_norm_(out, residual, delta, w, eps);
}

void Backend::add_rms_norm_(Tensor out, Tensor residual, Tensor delta, Tensor w, float eps) {
  add(residual, residual, delta);
  rms_norm(out, residual, w, eps);
}

void Backend::gather_rms_norm(Tensor out, Tensor x, Tensor rows, Tensor w, float eps) {
  expect_f32("gather_rms_norm", "x", x, {-1, -1});
  expect_f32("gather_rms_norm", "out", out, {-1, x.dim(1)});
  expect_i32("gather_rms_norm", "rows", rows, {out.dim(0)});
  expect_f32("gather_rms_norm", "w", w, {x.dim(1)});
  Timed timed(*this, "gather_rms_norm");
  gather_rms_norm_(out, x, rows, w, eps);
}

void Backend::gather_rms_norm_(Tensor out, Tensor x, Tensor rows, Tensor w, float eps) {
  gather_rows(out, x, rows);
  rms_norm(out, out, w, eps);
}

void Backend::matmul_group(std::span<const MatmulPart> parts, Tensor x, const InputNorm& norm) {
  for (const MatmulPart& p : parts) {
    expect_f32("matmul_group", "x", x, {-1, p.w->cols()});
    expect_f32("matmul_group", "out", p.out, {x.dim(0), p.w->rows()});
    if (p.bias.defined()) expect_f32("matmul_group", "bias", p.bias, {p.w->rows()});
  }
  expect_norm("matmul_group", norm, x);
  Timed timed(*this, "matmul_group");
  matmul_group_(parts, x, norm);
}

void Backend::matmul_group_(std::span<const MatmulPart> parts, Tensor x, const InputNorm& norm) {
  if (norm.w.defined()) rms_norm(norm.scratch, x, norm.w, norm.eps), x = norm.scratch;
  for (const MatmulPart& p : parts) matmul(p.out, x, *p.w, p.bias);
}

void Backend::matmul_glu(Tensor out, Tensor scratch, Tensor x, const InputNorm& norm,
                         const Weight& gate, Tensor gate_bias, const Weight& up, Tensor up_bias,
                         Activation activation) {
  expect_f32("matmul_glu", "x", x, {-1, gate.cols()});
  expect_f32("matmul_glu", "out", out, {x.dim(0), gate.rows()});
  expect_f32("matmul_glu", "scratch", scratch, out.shape);
  expect_norm("matmul_glu", norm, x);
  VT_CHECK(gate.rows() == up.rows() && gate.cols() == up.cols(),
           "matmul_glu: gate is {} x {}, up is {} x {}", gate.rows(), gate.cols(), up.rows(),
           up.cols());
  Timed timed(*this, "matmul_glu");
  matmul_glu_(out, scratch, x, norm, gate, gate_bias, up, up_bias, activation);
}

void Backend::matmul_glu_(Tensor out, Tensor scratch, Tensor x, const InputNorm& norm,
                          const Weight& gate, Tensor gate_bias, const Weight& up, Tensor up_bias,
                          Activation activation) {
  MatmulPart parts[] = {{out, &gate, gate_bias}, {scratch, &up, up_bias}};
  matmul_group(parts, x, norm);
  glu(out, out, scratch, activation);
}

void Backend::matmul_add(Tensor out, Tensor scratch, Tensor x, const Weight& w, Tensor bias) {
  expect_f32("matmul_add", "x", x, {-1, w.cols()});
  expect_f32("matmul_add", "out", out, {x.dim(0), w.rows()});
  expect_f32("matmul_add", "scratch", scratch, out.shape);
  if (bias.defined()) expect_f32("matmul_add", "bias", bias, {w.rows()});
  Timed timed(*this, "matmul_add");
  matmul_add_(out, scratch, x, w, bias);
}

void Backend::matmul_add_(Tensor out, Tensor scratch, Tensor x, const Weight& w, Tensor bias) {
  matmul(scratch, x, w, bias);
  add(out, out, scratch);
}

namespace {

void expect_heads(const char* op, Tensor q, Tensor k, Tensor v, const HeadNorms& norms,
                  Tensor table, const KvCache& cache, const KvIndex& index) {
  const KvShape& s = cache.shape;
  expect_f32(op, "q", q, {-1, -1, s.head_dim});
  expect_f32(op, "k", k, {q.dim(0), s.kv_heads, s.head_dim});
  expect_f32(op, "v", v, k.shape);
  expect_index(op, q.dim(0), index);
  if (table.defined()) {
    expect_f32(op, "table", table, {q.dim(0), -1, 2});
    VT_CHECK(2 * table.dim(1) <= s.head_dim, "{}: {} rotary dims in heads of {}", op,
             2 * table.dim(1), s.head_dim);
  }
  for (const Tensor* norm : {&norms.q, &norms.k})
    if (norm->defined()) expect_f32(op, "norm", *norm, {s.head_dim});
}

}  // namespace

void Backend::rope_store_kv(Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table,
                            const KvCache& cache, const KvIndex& index) {
  expect_heads("rope_store_kv", q, k, v, norms, table, cache, index);
  rope_store_kv_(q, k, v, norms, table, cache, index);
}

void Backend::attend(Tensor out, Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table,
                     const KvCache& cache, const KvIndex& index, const AttentionParams& params) {
  expect_heads("attend", q, k, v, norms, table, cache, index);
  expect_f32("attend", "out", out, q.shape);
  VT_CHECK(q.dim(1) % cache.shape.kv_heads == 0, "attend: {} heads over {} kv heads", q.dim(1),
           cache.shape.kv_heads);
  attend_(out, q, k, v, norms, table, cache, index, params);
}

void Backend::attend_(Tensor out, Tensor q, Tensor k, Tensor v, const HeadNorms& norms,
                      Tensor table, const KvCache& cache, const KvIndex& index,
                      const AttentionParams& params) {
  rope_store_kv(q, k, v, norms, table, cache, index);
  attention(out, q, cache, index, params);
}

void Backend::rope_store_kv_(Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table,
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

void Backend::feed_from(Tensor last) {
  expect_i32("feed_from", "last", last, {-1});
  feed_from_(last);
}

void Backend::draw(DrawnRow* drawn, Tensor last, const DrawRow* rows, Tensor logits, bool greedy) {
  expect_i32("draw", "last", last, {-1});
  expect_f32("draw", "logits", logits, {-1, -1});
  draw_(drawn, last, rows, logits, greedy);
}

void Backend::feed_from_(Tensor) { VT_CHECK(false, "{} does not feed tokens by itself", name()); }

void Backend::draw_(DrawnRow*, Tensor, const DrawRow*, Tensor, bool) {
  VT_CHECK(false, "{} does not draw", name());
}

std::span<const char* const> absent_backends() {
#ifdef VITRINE_NO_CUDA
  static const char* const kAbsent[] = {VITRINE_NO_CUDA};
  return kAbsent;
#else
  return {};
#endif
}

Result<std::unique_ptr<Backend>> create_backend(const std::string& name,
                                                const BackendOptions& options) {
  std::vector<const BackendDef*> defs(all_backends().begin(), all_backends().end());
  std::sort(defs.begin(), defs.end(),
            [](auto* a, auto* b) { return a->preference > b->preference; });
  std::string known = "auto";
  for (const BackendDef* def : defs) {
    known += fmt::format(", {}", def->name);
    if (name == def->name) return def->create(options);
    if (name == "auto") {
      auto backend = def->create(options);
      if (backend.ok() || backend.error().code != ErrorCode::kUnavailable) return backend;
    }
  }
  return make_error(ErrorCode::kInvalid, "no backend '{}'; there are: {}", name, known);
}

}  // namespace vitrine
