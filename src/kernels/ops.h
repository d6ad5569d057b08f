// Ops: the contract of everything that is computed on a device. `ref` is its specification, in plain
// C++.
//
// Calling: the public functions check types and shapes once, for every backend, time the call and
// count its work, and hand over to the protected virtual of the same name with an underscore.
// Activations are f32, contiguous, rows outermost. Letters: T rows (tokens) of the step, S
// sequences, M rows of logits, E model dim, H query heads, K kv heads, D head dim, F ffn dim, V
// vocabulary, P page size, R rotary dims, B pages of the longest block table.
//
// Rules that hold for every op and backend:
//  - Ownership: tensors are views. Their memory and the weights are the caller's, were made by the
//    device of this backend, and stay valid until the op has run (on an asynchronous device: until
//    its step is done). Ops of `cpu` and `cuda` allocate nothing.
//  - Threads: the engine thread only.
//  - Errors: none. A type or a shape that does not fit is our mistake and fails a VT_CHECK; values
//    (ids, slots, pages) are not checked.
//  - Order: an asynchronous device queues ops and runs them in the order of the calls.
//  - Replay: no op takes a host value that changes from step to step, apart from the shapes. Ids,
//    positions, offsets and block tables are tensors at fixed addresses, so that a device may
//    replay what it recorded.
//  - Rows: a row's result depends on that row's inputs alone: not on the number of rows, on their
//    order, or on threads. `cpu` and `ref` keep this to the bit (Device::exact);
//    docs/lab/accuracy.md has the table of arithmetics.
//  - Aliasing: `out` may be one of the inputs only where it says "in place".
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/draw_race.h"
#include "kernels/kv_cache.h"
#include "kernels/measures.h"
#include "kernels/weight.h"
#include "tensor/tensor.h"

namespace vitrine {

enum class Activation { kSilu, kGelu, kGeluTanh, kRelu };

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

// An RMS norm of the rows before they are multiplied. `w` undefined: none.
struct InputNorm {
  Tensor w = {};  // (K)
  float eps = 0;
  Tensor scratch = {};  // (T,K), for backends that write the normed rows first
};

// RMS norms of each head of q and k, of width D; undefined: none.
struct HeadNorms {
  Tensor q = {}, k = {};
  float eps = 0;
};

// How the next token of a row is drawn: temperature, top_k, top_p and min_p, in this order, with
// the meaning they have in sampling/, then the race of base/draw_race.h. Probabilities are integers
// and the noise has the same bits everywhere, so that every backend draws the same token from the
// same logits. `cpu` does not draw: its tokens are drawn by sampling/.
struct DrawRow {
  DrawKey key = {};        // whose noise
  double scale = 1;        // 1 / temperature
  double top_p = 1;        // 1: off
  double max_nats = 0;     // -log(min_p); infinite: off
  std::int32_t top_k = 0;  // 0: off; 1: the best token, whatever the rest says
  std::int32_t slot = -1;  // where in `last` the token goes; -1: the row is not drawn
};
// The result of a draw.
struct DrawnRow {
  std::int32_t token = -1;
  std::int32_t status = 0;  // 0: drawn; 1: a NaN among the logits; 2: all of them -inf
};

class Ops {
 public:
  virtual ~Ops() = default;

  // out[t] = table[ids[t]] * scale.            out (T,E), ids (T) i32 within the table
  void embed(Tensor out, const Weight& table, Tensor ids, float scale = 1);
  // out = x * w^T + bias.                      out (T,N), x (T,K), w (N,K), bias (N) or undefined
  void matmul(Tensor out, Tensor x, const Weight& w, Tensor bias = {});
  // out = x / sqrt(mean(x^2) + eps) * w.       out, x (T,E), w (E); in place allowed
  void rms_norm(Tensor out, Tensor x, Tensor w, float eps);
  // out = (x - mean) / sqrt(var + eps) * w + b. out, x (T,E), w, b (E), b may be undefined;
  //                                            in place allowed
  void layer_norm(Tensor out, Tensor x, Tensor w, Tensor b, float eps);
  // table[t] = (cos, sin)(positions[t] * inv_freq[i]) * scale.  table (T,R/2,2), inv_freq (R/2)
  void rope_table(Tensor table, Tensor positions, Tensor inv_freq, float scale);
  // Rotates pairs (i, i + R/2) of the first R dims of every head, in place.  x (T,H,D), R <= D
  void rope(Tensor x, Tensor table);
  // Writes row t's K and V to slot slots[t].   k (T,K,D), v (T,K,Dv); Dv: the layout's width of V
  void store_kv(Tensor k, Tensor v, const KvCache& cache, const KvIndex& index);
  // softmax(q k^T * scale) v over the pages, causal.  out (T,H,Dv), q (T,H,D), H a multiple of K
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
  // out (M,E) = rms_norm of the rows (M) of x (T,E); out is not x; rows and w were written before
  // this step began
  void gather_rms_norm(Tensor out, Tensor x, Tensor rows, Tensor w, float eps);
  // The products of x, normed, with each weight.  x (T,K)
  void matmul_group(std::span<const MatmulPart> parts, Tensor x, const InputNorm& norm = {});
  // out = activation(x * gate^T) * (x * up^T), with x normed and biases.
  //                                            out, scratch (T,F), x (T,E)
  void matmul_glu(Tensor out, Tensor scratch, Tensor x, const InputNorm& norm, const Weight& gate,
                  Tensor gate_bias, const Weight& up, Tensor up_bias, Activation activation);
  // out += x * w^T + bias.                     out, scratch (T,N), x (T,K)
  void matmul_add(Tensor out, Tensor scratch, Tensor x, const Weight& w, Tensor bias = {});
  // Norms the heads of q and k, rotates them (table undefined: not) and stores k and v.
  void rope_store_kv(Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table,
                     const KvCache& cache, const KvIndex& index);

  // rope_store_kv and attention. q and k need not be rotated afterwards.  out (T,H,Dv), q (T,H,D)
  void attend(Tensor out, Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table,
              const KvCache& cache, const KvIndex& index, const AttentionParams& params);

  // For asynchronous backends only: these keep a sampled token on the device.
  // From now on an id of -1 - slot in embed() is last[slot]. Called before anything is repeated: a
  // recording keeps the tensor that it was made with.  last (slots) i32
  void feed_from(Tensor last);
  // Draws a token for each of the M rows that have a slot; writes it to last[slot] and drawn[m].
  // rows, drawn: M of them in the device's memory; logits (M,V). `greedy`: top_k is 1 in all rows.
  void draw(DrawnRow* drawn, Tensor last, const DrawRow* rows, Tensor logits, bool greedy);

  // ---- accounts; called while no op runs
  // Times every op from now on, from zero. An op that is composed of others counts as itself.
  void time_ops(bool on) { timing_ = on, op_times_.clear(); }
  // Those since time_ops(), or since the last call.
  std::vector<OpTime> take_op_times() { return std::exchange(op_times_, {}); }
  // Of the products that ran, or were queued, since the last call.
  Work take_work() { return std::exchange(work_, {}); }

 protected:
  // Adds work that ran without its ops being called.
  void add_work(const Work& work) { work_ += work; }
  const Work& work() const { return work_; }

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
  class Call;
  bool timing_ = false;
  int depth_ = 0;  // of ops that call ops
  std::vector<OpTime> op_times_;
  Work work_;
};

}  // namespace vitrine
