#include "nn/layers.h"

#include "nn/weight_loader.h"

namespace vitrine {
namespace {

// The weights of a norm of each head, for the op that does them all; a norm over all heads at once
// is done here.
Tensor head_norm(Ops& ops, const Norm& norm, Tensor x, std::int64_t head_dim) {
  if (!norm.defined() || norm.w.dim(0) == head_dim) return norm.w;
  norm.rms(ops, x, x);
  return {};
}

}  // namespace

Stream Stream::scratch(WeightLoader& w, int max_tokens, int dim) {
  return {w.activations({max_tokens, dim}), w.activations({max_tokens, dim}),
          w.activations({max_tokens, dim})};
}

Attention::Scratch Attention::scratch(WeightLoader& w, int max_tokens, int q_dim, int kv_dim) {
  return {w.activations({max_tokens, q_dim}), w.activations({max_tokens, kv_dim}),
          w.activations({max_tokens, kv_dim}), w.activations({max_tokens, q_dim})};
}

GatedFfn::Scratch GatedFfn::scratch(WeightLoader& w, int max_tokens, int ffn) {
  return {w.activations({max_tokens, ffn}), w.activations({max_tokens, ffn})};
}

Mlp::Scratch Mlp::scratch(WeightLoader& w, int max_tokens, int ffn) {
  return {w.activations({max_tokens, ffn})};
}

Tensor Attention::heads_of(Ops& ops, const ModelInput& in, int layer, Tensor x,
                           const InputNorm& norm, Tensor rope, const Scratch& s) const {
  std::int64_t T = x.dim(0), H = heads, K = kv_heads, D = head_dim;
  Tensor qs = s.q.rows(T), ks = s.k.rows(T), vs = s.v.rows(T), as = s.out.rows(T);
  MatmulPart parts[] = {
      {qs, q.weight.get(), q.bias}, {ks, k.weight.get(), k.bias}, {vs, v.weight.get(), v.bias}};
  ops.matmul_group(parts, x, norm);
  HeadNorms norms{head_norm(ops, q_norm, qs, D), head_norm(ops, k_norm, ks, D), q_norm.eps};
  Tensor qh = qs.view({T, H, D}), kh = ks.view({T, K, D}), vh = vs.view({T, K, D});
  const KvCache& cache = in.caches[layer];
  const KvIndex& index = in.groups[in.group_of[layer]];
  ops.attend(as.view({T, H, D}), qh, kh, vh, norms, rope, cache, index, params);
  return as;
}

void Attention::operator()(Ops& ops, const ModelInput& in, int layer, Tensor out, Tensor x,
                           Tensor rope, const Scratch& s) const {
  o(ops, out, heads_of(ops, in, layer, x, {}, rope, s));
}

void Attention::residual(Ops& ops, const ModelInput& in, int layer, const Stream& stream,
                         const Norm& norm, Tensor rope, const Scratch& s) const {
  Tensor as = heads_of(ops, in, layer, stream.x, norm.before(stream.h), rope, s);
  ops.matmul_add(stream.x, stream.d, as, *o.weight, o.bias);
}

void GatedFfn::operator()(Ops& ops, Tensor out, Tensor x, const Scratch& s) const {
  Tensor g = s.gate.rows(x.dim(0)), u = s.up.rows(x.dim(0));
  ops.matmul_glu(g, u, x, {}, *gate.weight, gate.bias, *up.weight, up.bias, activation);
  down(ops, out, g);
}

void GatedFfn::residual(Ops& ops, const Stream& stream, const Norm& norm, const Scratch& s) const {
  Tensor g = s.gate.rows(stream.x.dim(0)), u = s.up.rows(stream.x.dim(0));
  ops.matmul_glu(g, u, stream.x, norm.before(stream.h), *gate.weight, gate.bias, *up.weight,
                 up.bias, activation);
  ops.matmul_add(stream.x, stream.d, g, *down.weight, down.bias);
}

void Mlp::operator()(Ops& ops, Tensor out, Tensor x, const Scratch& s) const {
  Tensor u = s.up.rows(x.dim(0));
  up(ops, u, x);
  ops.activate(u, activation);
  down(ops, out, u);
}

}  // namespace vitrine
