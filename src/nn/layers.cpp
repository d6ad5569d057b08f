#include "nn/layers.h"

#include "base/check.h"

namespace vitrine {
namespace {

// The weights of a norm of each head, for the op that does them all; a norm over all heads at once
// is done here.
Tensor head_norm(Ops& ops, const Norm& norm, Tensor x, std::int64_t head_dim) {
  if (!norm.defined() || norm.w.dim(0) == head_dim) return norm.w;
  norm(ops, x, x);
  return {};
}

}  // namespace

Activations Activations::rows(std::int64_t n) const {
  auto first = [n](const Tensor& t) { return t.defined() ? t.rows(n) : t; };
  return {first(x), first(h),    first(d),   first(q), first(k),
          first(v), first(attn), first(ffn), first(up)};
}

void Norm::operator()(Ops& ops, Tensor out, Tensor x) const {
  if (kind == NormKind::kRms)
    ops.rms_norm(out, x, w, eps);
  else
    ops.layer_norm(out, x, w, b, eps);
}

void Norm::of_rows(Ops& ops, Tensor out, Tensor x, Tensor rows) const {
  if (defined() && kind == NormKind::kRms) return ops.gather_rms_norm(out, x, rows, w, eps);
  ops.gather_rows(out, x, rows);
  if (defined()) (*this)(ops, out, out);
}

InputNorm Norm::before(Tensor scratch) const {
  VT_CHECK(kind == NormKind::kRms, "only RMS norms are part of a product");
  return {w, eps, scratch};
}

void Attention::attend(Step& s, Tensor x, const InputNorm& norm) const {
  const std::int64_t T = x.dim(0), H = heads, K = kv_heads, D = head_dim;
  Linear::group(s.ops, {{s.q, q}, {s.k, k}, {s.v, v}}, x, norm);
  HeadNorms norms{head_norm(s.ops, q_norm, s.q, D), head_norm(s.ops, k_norm, s.k, D), q_norm.eps};
  s.ops.attend(s.attn.view({T, H, D}), s.q.view({T, H, D}), s.k.view({T, K, D}),
               s.v.view({T, K, D}), norms, s.rope, s.in.caches[s.layer],
               s.in.groups[s.in.group_of[s.layer]], params);
}

void Attention::operator()(Step& s, Tensor out, Tensor x) const {
  attend(s, x, {});
  o(s.ops, out, s.attn);
}

void Attention::residual(Step& s, const Norm& norm) const {
  attend(s, s.x, norm.before(s.h));
  o.add(s.ops, s.x, s.d, s.attn);
}

void GatedFfn::operator()(Step& s, Tensor out, Tensor x) const {
  Linear::glu(s.ops, s.ffn, s.up, x, {}, gate, up, activation);
  down(s.ops, out, s.ffn);
}

void GatedFfn::residual(Step& s, const Norm& norm) const {
  Linear::glu(s.ops, s.ffn, s.up, s.x, norm.before(s.h), gate, up, activation);
  down.add(s.ops, s.x, s.d, s.ffn);
}

void Mlp::operator()(Step& s, Tensor out, Tensor x) const {
  up(s.ops, s.ffn, x);
  s.ops.activate(s.ffn, activation);
  down(s.ops, out, s.ffn);
}

}  // namespace vitrine
