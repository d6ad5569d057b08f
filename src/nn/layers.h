// Layers: weights bound to ops. A layer never asks which model it is in.
#pragma once

#include <span>

#include "kernels/ops.h"
#include "nn/linear.h"

namespace vitrine {

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

// The activations of a decoder, rows of a step.
struct Activations {
  Tensor x, h, d;        // (T,E): the residual, normed rows, what a layer adds
  Tensor q, k, v, attn;  // (T,H*D), (T,K*D), (T,K*D), (T,H*D)
  Tensor ffn, up;        // (T,F); up: of gated FFNs only
  // The first n rows of each.
  Activations rows(std::int64_t n) const;
};

// A step on its way through the layers.
struct Step : Activations {
  Ops& ops;
  const ModelInput& in;
  int layer = 0;
  Tensor rope = {};  // (T,R/2,2) of this layer; undefined: positions are not rotated
};

enum class NormKind { kRms, kLayer };

struct Norm {
  Tensor w, b;  // (E); b may be undefined
  float eps = 0;
  NormKind kind = NormKind::kRms;
  bool defined() const { return w.defined(); }
  // out, x (T,E); out may be x.
  void operator()(Ops& ops, Tensor out, Tensor x) const;
  // out (M,E) of the rows (M) of x (T,E). Not defined: the rows as they are.
  void of_rows(Ops& ops, Tensor out, Tensor x, Tensor rows) const;
  // As part of a product; RMS norms only.
  InputNorm before(Tensor scratch) const;
};

// Self-attention: projections, optional norms of q and k, optional rotary, cache, output
// projection.
struct Attention {
  int heads = 0, kv_heads = 0, head_dim = 0;
  AttentionParams params = {};
  Linear q = {}, k = {}, v = {}, o = {};
  // Of width head_dim (each head) or heads * head_dim (all of q); undefined: none.
  Norm q_norm = {}, k_norm = {};

  // out = attention of x.                      out, x (T,E)
  void operator()(Step& s, Tensor out, Tensor x) const;
  // s.x += attention of norm(s.x).
  void residual(Step& s, const Norm& norm) const;

 private:
  // All but the output projection, to s.attn.
  void attend(Step& s, Tensor x, const InputNorm& norm) const;
};

// down(activation(gate(x)) * up(x))
struct GatedFfn {
  Activation activation = Activation::kSilu;
  Linear gate = {}, up = {}, down = {};
  void operator()(Step& s, Tensor out, Tensor x) const;
  // s.x += the same of norm(s.x).
  void residual(Step& s, const Norm& norm) const;
};

// down(activation(up(x)))
struct Mlp {
  Activation activation = Activation::kGelu;
  Linear up = {}, down = {};
  void operator()(Step& s, Tensor out, Tensor x) const;
};

}  // namespace vitrine
