// Layers: weights bound to backend calls. A layer never asks which model it is in.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/ops.h"

namespace vitrine {

class WeightLoader;

// What a step hands to a model. Tensors at fixed addresses, filled by the runner.
struct ModelInput {
  Tensor ids;                       // (T) i32
  Tensor positions;                 // (T) i32
  Tensor out_rows;                  // (M) i32: the rows whose final hidden states are wanted
  std::span<const KvIndex> groups;  // by cache group
  std::span<const KvCache> caches;  // by layer
  std::span<const int> group_of;    // by layer
  std::int64_t tokens() const { return ids.dim(0); }
};

struct Linear {
  std::unique_ptr<Weight> weight;  // (N, K)
  Tensor bias;                     // (N) or undefined
  void operator()(Ops& ops, Tensor out, Tensor x) const { ops.matmul(out, x, *weight, bias); }
};

struct Norm {
  Tensor w, b;  // (E); b may be undefined
  float eps = 0;
  bool defined() const { return w.defined(); }
  void rms(Ops& ops, Tensor out, Tensor x) const { ops.rms_norm(out, x, w, eps); }
  void rms(Ops& ops, Tensor out, Tensor x, Tensor rows) const {
    ops.gather_rms_norm(out, x, rows, w, eps);
  }
  void layer(Ops& ops, Tensor out, Tensor x) const { ops.layer_norm(out, x, w, b, eps); }
  // As part of a product.
  InputNorm before(Tensor scratch) const { return {w, eps, scratch}; }
};

// The rows of a step on their way through the layers, (T,E) each.
struct Stream {
  Tensor x, h, d;  // residual, normed, delta
  static Stream scratch(WeightLoader& w, int max_tokens, int dim);
  Stream rows(std::int64_t n) const { return {x.rows(n), h.rows(n), d.rows(n)}; }
};

// Self-attention: projections, optional norms of q and k, optional rotary, cache, output
// projection.
struct Attention {
  int heads = 0, kv_heads = 0, head_dim = 0;
  AttentionParams params = {};
  Linear q = {}, k = {}, v = {}, o = {};
  // Of width head_dim (each head) or heads * head_dim (all of q); undefined: none.
  Norm q_norm = {}, k_norm = {};

  struct Scratch {
    Tensor q, k, v, out;  // (max T, H*D), (max T, K*D), (max T, K*D), (max T, H*D)
  };
  static Scratch scratch(WeightLoader& w, int max_tokens, int q_dim, int kv_dim);
  // out (T,E) = attention of x (T,E) in layer `layer`. `rope`: (T,R/2,2), undefined for none.
  void operator()(Ops& ops, const ModelInput& in, int layer, Tensor out, Tensor x, Tensor rope,
                  const Scratch& s) const;
  // x += attention of x, RMS-normed.
  void residual(Ops& ops, const ModelInput& in, int layer, const Stream& stream, const Norm& norm,
                Tensor rope, const Scratch& s) const;

 private:
  // All but the output projection; (T,H*D).
  Tensor heads_of(Ops& ops, const ModelInput& in, int layer, Tensor x, const InputNorm& norm,
                  Tensor rope, const Scratch& s) const;
};

// down(activation(gate(x)) * up(x))
struct GatedFfn {
  Activation activation = Activation::kSilu;
  Linear gate = {}, up = {}, down = {};
  struct Scratch {
    Tensor gate, up;  // (max T, F)
  };
  static Scratch scratch(WeightLoader& w, int max_tokens, int ffn);
  void operator()(Ops& ops, Tensor out, Tensor x, const Scratch& s) const;
  // x += the same of x, RMS-normed.
  void residual(Ops& ops, const Stream& stream, const Norm& norm, const Scratch& s) const;
};

// down(activation(up(x)))
struct Mlp {
  Activation activation = Activation::kGelu;
  Linear up = {}, down = {};
  struct Scratch {
    Tensor up;  // (max T, F)
  };
  static Scratch scratch(WeightLoader& w, int max_tokens, int ffn);
  void operator()(Ops& ops, Tensor out, Tensor x, const Scratch& s) const;
};

}  // namespace vitrine
