// Backend: the contract of every operation. `ref` is its specification, in plain C++.
//
// Calling: the public functions check shapes once, for every backend, and hand over to the
// protected virtuals of the same name with an underscore. Activations are f32, contiguous, rows
// outermost. Letters: T rows (tokens) of the step, S sequences, E model dim, H query heads, K kv
// heads, D head dim, F ffn dim, V vocabulary, P page size, R rotary dims, B pages of the longest
// block table.
//
// Rules that hold for every op and backend:
//  - No op takes a host value that changes from step to step, apart from the shapes: ids,
//  positions,
//    offsets and block tables are tensors at fixed addresses, so that a device may replay a
//    capture.
//  - A row's result depends on that row's inputs alone: not on the number of rows, on the order of
//    rows, or on threads. `cpu` keeps this to the bit; ARCHITECTURE.md has the table of
//    arithmetics.
//  - `out` may be one of the inputs only where it says "in place".
//  - Called from the engine thread only.
//  - An asynchronous backend queues ops and returns; they run in the order of the calls. write()
//  and
//    copy() are queued too, read() waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"

namespace vitrine {

// A matrix as a file holds it: N rows of K weights, each row on its own pointer, so that slicing,
// joining and permuting rows costs nothing. `owner` keeps rows alive that are not in the file.
struct MatrixSource {
  std::string name;
  DType dtype = DType::kF32;
  std::int64_t cols = 0;                   // K, a multiple of the format's block
  std::vector<const std::byte*> row_data;  // N
  std::shared_ptr<const void> owner;
  std::int64_t rows() const { return static_cast<std::int64_t>(row_data.size()); }
};

// A packed matrix, in whatever layout its backend reads. Immutable.
class Weight {
 public:
  virtual ~Weight() = default;
  std::int64_t rows() const { return rows_; }    // N
  std::int64_t cols() const { return cols_; }    // K
  DType dtype() const { return dtype_; }         // of the file
  std::int64_t bytes() const { return bytes_; }  // that one pass over the matrix reads

 protected:
  Weight(std::int64_t rows, std::int64_t cols, DType dtype, std::int64_t bytes)
      : rows_(rows), cols_(cols), dtype_(dtype), bytes_(bytes) {}

 private:
  std::int64_t rows_, cols_;
  DType dtype_;
  std::int64_t bytes_;
};

// Memory of a backend. 64-byte aligned, zeroed at allocation.
class Buffer {
 public:
  Buffer() = default;
  Buffer(void* data, std::int64_t bytes, std::function<void(void*)> release)
      : data_(data, std::move(release)), bytes_(bytes) {}
  void* data() const { return data_.get(); }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<void, std::function<void(void*)>> data_{nullptr, [](void*) {}};
  std::int64_t bytes_ = 0;
};

// kHead: a product that gives logits, whose errors nothing after it evens out.
enum class WeightUse { kMatmul, kHead, kTable };
enum class Activation { kSilu, kGelu, kGeluTanh, kRelu };

// The K and V of one layer: n_pages pages of page_size positions. What a page looks like inside is
// the backend's business; its size is kv_page_bytes().
struct KvShape {
  int kv_heads = 0;           // K
  int head_dim = 0;           // D
  int page_size = 0;          // P
  DType dtype = DType::kF32;  // f32, f16 or bf16
};
struct KvCache {
  KvShape shape;
  std::int64_t n_pages = 0;
  std::byte* data = nullptr;
};

// Which rows belong to which sequence and where their K and V live. One per cache group and step.
struct KvIndex {
  Tensor positions;  // (T) i32: absolute position of each row; row t sees positions 0..positions[t]
  Tensor row_offsets;  // (S+1) i32: sequence s owns rows row_offsets[s] .. row_offsets[s+1]-1
  Tensor slots;        // (T) i32: page * P + offset where row t's K and V are stored
  Tensor block_table;  // (S, B) i32: page of positions i*P .. i*P+P-1; -1 where nothing is held
};

struct AttentionParams {
  float scale = 1;    // scores are q.k * scale
  int window = 0;     // > 0: row at p sees positions p-window+1 .. p only
  float softcap = 0;  // > 0: score becomes softcap * tanh(score / softcap)
};

// One of the products that share their input.
struct MatmulPart {
  Tensor out;        // (T,N)
  const Weight* w;   // (N,K)
  Tensor bias = {};  // (N) or undefined
};

// An RMS norm of the rows before they are multiplied; undefined: none.
struct InputNorm {
  Tensor w = {};  // (K)
  float eps = 0;
  Tensor scratch = {};  // (T,K), for backends that norm first
};

// RMS norms of each head of q and k, of width D; undefined: none.
struct HeadNorms {
  Tensor q = {}, k = {};
  float eps = 0;
};

// How the next token of a row is drawn: temperature, top_k, top_p and min_p, in this order, with
// the meaning they have in sampling/. Weights are integers there, so that every backend draws the
// same token from the same logits.
struct DrawRow {
  std::uint64_t bits = 0;  // the random number
  double scale = 1;        // 1 / temperature
  double top_p = 1;        // 1: off
  double max_nats = 0;     // -log(min_p); infinite: off
  std::int32_t top_k = 0;  // 0: off; 1: the best token, whatever the rest says
  std::int32_t slot = -1;  // where in `last` the token goes; -1: the row is not drawn
};
// What came of it.
struct DrawnRow {
  std::int32_t token = -1;
  std::int32_t status = 0;  // 0: drawn; 1: a NaN among the logits; 2: all of them -inf
};

// When a step ran on the device, by its own clock.
struct StepTimes {
  std::int64_t busy_ns = 0;  // from its first op to its last
  std::int64_t idle_ns = 0;  // between the end of the step before it and its first op
};

// What the machine can do with this backend's threads, measured.
struct Peak {
  double read_gb_s = 0;  // memory, read only
  double gflop_s = 0;    // of the instruction that multiplies weights of the type asked for
};

// What the calls of one op took together, on the host's clock.
struct OpTime {
  const char* op;
  std::int64_t calls;
  double seconds;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;         // "ref", "cpu"
  virtual std::string description() const = 0;  // with what was found: "cpu (avx512, 2 threads)"
  virtual int threads() const { return 1; }
  virtual Peak measure_peak(DType weights) = 0;  // takes about a second
  virtual bool asynchronous() const { return false; }
  // Whether a row's bits are the same in any company, so that two runs give the same.
  virtual bool exact() const { return true; }
  // Bytes that allocate() can still give, if known. By default the host's.
  virtual std::optional<std::int64_t> free_memory() const;
  // Rows of logits that are computed at once: enough to share one pass over the head's weights, few
  // enough that the buffer stays small for any vocabulary.
  virtual int head_rows() const { return 32; }

  // Times every op from now on, from zero. Called while no op runs.
  void time_ops(bool on) { timing_ = on, depth_ = 0, op_times_.clear(); }
  // Those since then, or since the last call.
  std::vector<OpTime> take_op_times() { return std::exchange(op_times_, {}); }

  // Memory and weights; at load only.
  virtual Result<Buffer> allocate(std::int64_t bytes) = 0;
  // Memory that host code may use too, for results that come back by read_later().
  virtual Result<Buffer> allocate_shared(std::int64_t bytes) { return allocate(bytes); }
  // Host memory to this backend's memory. `from` may change as soon as the call returns.
  virtual void write(void* to, const void* from, std::int64_t bytes) = 0;
  // The other way. Returns where the bytes can be read on the host until the next op: `from` itself
  // where that is host memory, otherwise `staging`, filled.
  virtual const void* read(const void* from, std::int64_t bytes, void* staging) = 0;
  // Bytes that pack() will keep for such a matrix (for the memory plan).
  virtual std::int64_t packed_bytes(DType dtype, std::int64_t rows, std::int64_t cols,
                                    WeightUse use) const = 0;
  // kMatmul: for matmul(). kTable: for embed(). The source may be dropped afterwards unless it is a
  // view of the model file, which must outlive the weight.
  virtual Result<std::unique_ptr<Weight>> pack(const MatrixSource& source, WeightUse use) = 0;
  virtual std::int64_t kv_page_bytes(const KvShape& shape) const = 0;
  // Within this backend's memory; the ranges do not overlap.
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;
  // Steps. What is queued between begin_step() and end_step() is one; wait(ticket) returns when it
  // is through. At most kStepsInFlight tickets are out. `follows`: there was work since the step
  // before, so that a gap between the two is a loss.
  static constexpr int kStepsInFlight = 2;
  virtual void begin_step(std::uint64_t /*step*/, bool /*follows*/) {}
  virtual int end_step() { return 0; }
  virtual StepTimes wait(int /*ticket*/) { return {}; }
  // Queues a copy to memory of allocate_shared(); it is there when the step's ticket is.
  virtual void read_later(void* to, const void* from, std::int64_t bytes) { copy(to, from, bytes); }
  // Makes `calls`, which call ops only. The same key promises the same ops on the same tensors, so
  // that a backend may record the calls and replay them.
  virtual void repeat(std::uint64_t /*key*/, const std::function<void()>& calls) { calls(); }
  // One page of one layer to another of the same cache.
  void copy_kv_page(const KvCache& cache, std::int64_t from, std::int64_t to);

  // out[t] = table[ids[t]] * scale.            out (T,E), ids (T) i32 within the table
  void embed(Tensor out, const Weight& table, Tensor ids, float scale = 1);
  // out = x * w^T + bias.                      out (T,N), x (T,K), w (N,K), bias (N) or undefined
  void matmul(Tensor out, Tensor x, const Weight& w, Tensor bias = {});
  // out = x / sqrt(mean(x^2) + eps) * w.       out, x (T,E), w (E); in place allowed
  void rms_norm(Tensor out, Tensor x, Tensor w, float eps);
  // out = (x - mean) / sqrt(var + eps) * w + b. out, x (T,E), w, b (E), b may be undefined; in
  // place
  void layer_norm(Tensor out, Tensor x, Tensor w, Tensor b, float eps);
  // table[t] = (cos, sin)(positions[t] * inv_freq[i]) * scale.  table (T,R/2,2), inv_freq (R/2)
  void rope_table(Tensor table, Tensor positions, Tensor inv_freq, float scale);
  // Rotates pairs (i, i + R/2) of the first R dims of every head, in place.  x (T,H,D), R <= D
  void rope(Tensor x, Tensor table);
  // Writes row t's K and V to slot slots[t].   k, v (T,K,D)
  void store_kv(Tensor k, Tensor v, const KvCache& cache, const KvIndex& index);
  // softmax(q k^T * scale) v over the pages, causal.  out, q (T,H,D), H a multiple of K
  void attention(Tensor out, Tensor q, const KvCache& cache, const KvIndex& index,
                 const AttentionParams& params);
  // out = a + b.                               all (T,E); in place allowed
  void add(Tensor out, Tensor a, Tensor b);
  // x = activation(x), in place.               gelu is the erf form, gelu_tanh the tanh form
  void activate(Tensor x, Activation activation);
  // out = activation(gate) * up.               all (T,F); in place allowed
  void glu(Tensor out, Tensor gate, Tensor up, Activation activation);
  // x = cap * tanh(x / cap), in place.
  void softcap(Tensor x, float cap);
  // out[i] = x[rows[i]].                       out (M,E), x (T,E), rows (M) i32
  void gather_rows(Tensor out, Tensor x, Tensor rows);

  // Fusions: speed only. The default composes the ops above.
  // residual += delta; out = rms_norm(residual).  all (T,E); out is neither input
  void add_rms_norm(Tensor out, Tensor residual, Tensor delta, Tensor w, float eps);
  // out (M,E) = rms_norm of the rows (M) of x (T,E); out is not x; rows and w are not of this step
  void gather_rms_norm(Tensor out, Tensor x, Tensor rows, Tensor w, float eps);
  // The products of x, normed, with each weight.  x (T,K)
  void matmul_group(std::span<const MatmulPart> parts, Tensor x, const InputNorm& norm = {});
  // out = activation(x * gate^T) * (x * up^T), with x normed and biases.  out, scratch (T,F); x
  // (T,E)
  void matmul_glu(Tensor out, Tensor scratch, Tensor x, const InputNorm& norm, const Weight& gate,
                  Tensor gate_bias, const Weight& up, Tensor up_bias, Activation activation);
  // out += x * w^T + bias.                     out, scratch (T,N), x (T,K)
  void matmul_add(Tensor out, Tensor scratch, Tensor x, const Weight& w, Tensor bias = {});
  // Norms the heads of q and k, rotates them (table undefined: not) and stores k and v.
  void rope_store_kv(Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table,
                     const KvCache& cache, const KvIndex& index);

  // rope_store_kv and attention. q and k need not be rotated afterwards.  out, q (T,H,D)
  void attend(Tensor out, Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table,
              const KvCache& cache, const KvIndex& index, const AttentionParams& params);

  // For asynchronous backends only: what keeps a sampled token on the device.
  // From now on an id of -1 - slot in embed() is last[slot]. Before anything is repeated: what was
  // recorded keeps the one it knew.  last (slots) i32
  void feed_from(Tensor last);
  // Draws a token for each of the M rows that have a slot; writes it to last[slot] and drawn[m].
  // rows, drawn: M of them in this backend's memory; logits (M,V). `greedy`: top_k is 1 in all
  // rows.
  void draw(DrawnRow* drawn, Tensor last, const DrawRow* rows, Tensor logits, bool greedy);

 protected:
  virtual void embed_(Tensor out, const Weight& table, Tensor ids, float scale) = 0;
  virtual void matmul_(Tensor out, Tensor x, const Weight& w, Tensor bias) = 0;
  virtual void rms_norm_(Tensor out, Tensor x, Tensor w, float eps) = 0;
  virtual void layer_norm_(Tensor out, Tensor x, Tensor w, Tensor b, float eps) = 0;
  virtual void rope_table_(Tensor table, Tensor positions, Tensor inv_freq, float scale) = 0;
  virtual void rope_(Tensor x, Tensor table) = 0;
  virtual void store_kv_(Tensor k, Tensor v, const KvCache& cache, const KvIndex& index) = 0;
  virtual void attention_(Tensor out, Tensor q, const KvCache& cache, const KvIndex& index,
                          const AttentionParams& params) = 0;
  virtual void add_(Tensor out, Tensor a, Tensor b) = 0;
  virtual void activate_(Tensor x, Activation activation) = 0;
  virtual void glu_(Tensor out, Tensor gate, Tensor up, Activation activation) = 0;
  virtual void softcap_(Tensor x, float cap) = 0;
  virtual void gather_rows_(Tensor out, Tensor x, Tensor rows) = 0;
  virtual void add_rms_norm_(Tensor out, Tensor residual, Tensor delta, Tensor w, float eps);
  virtual void gather_rms_norm_(Tensor out, Tensor x, Tensor rows, Tensor w, float eps);
  virtual void matmul_group_(std::span<const MatmulPart> parts, Tensor x, const InputNorm& norm);
  virtual void matmul_glu_(Tensor out, Tensor scratch, Tensor x, const InputNorm& norm,
                           const Weight& gate, Tensor gate_bias, const Weight& up, Tensor up_bias,
                           Activation activation);
  virtual void matmul_add_(Tensor out, Tensor scratch, Tensor x, const Weight& w, Tensor bias);
  virtual void rope_store_kv_(Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table,
                              const KvCache& cache, const KvIndex& index);
  virtual void attend_(Tensor out, Tensor q, Tensor k, Tensor v, const HeadNorms& norms,
                       Tensor table, const KvCache& cache, const KvIndex& index,
                       const AttentionParams& params);
  virtual void feed_from_(Tensor last);
  virtual void draw_(DrawnRow* drawn, Tensor last, const DrawRow* rows, Tensor logits, bool greedy);

 private:
  class Timed;
  bool timing_ = false;
  int depth_ = 0;
  std::vector<OpTime> op_times_;
};

struct BackendOptions {
  int threads = 0;  // 0: as many as this process may use
  std::string isa =
      {};  // cpu only: "avx2", "avx512", "vnni", "bf16", "amx"; empty: the best there is
  // cuda: one kernel and one order of summation for every number of rows. The others always do so.
  bool deterministic = false;
  bool synchronous =
      false;  // cuda: every op waits until it is through, so that an error has a name
};

// One per folder kernels/<name>/, listed by CMake.
struct BackendDef {
  const char* name;
  int preference;  // "auto" takes the usable backend with the highest
  // An error says why this machine cannot use it.
  Result<std::unique_ptr<Backend>> (*create)(const BackendOptions& options);
};
std::span<const BackendDef* const> all_backends();
// Folders that this build left out, and why: "cuda: nvcc was not found". May be empty.
std::span<const char* const> absent_backends();

// `name`: a backend's name or "auto".
Result<std::unique_ptr<Backend>> create_backend(const std::string& name,
                                                const BackendOptions& options);

}  // namespace vitrine
