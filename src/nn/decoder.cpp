#include "nn/decoder.h"

namespace vitrine {

Norm bind_final_norm(WeightLoader& w, const DecoderConfig& c) {
  auto named = [&](const char* end) {
    return Name{c.names.norm.gguf + end, c.names.norm.hf + end};
  };
  return w.norm(c.norm, named(".weight"), c.dim, c.eps, named(".bias"), c.norm_offset);
}

Activations allocate_activations(WeightLoader& w, const DecoderConfig& c, int max_tokens,
                                 bool gated) {
  auto rows = [&](int width) { return w.activations({max_tokens, width}); };
  Activations a;
  for (Tensor* t : {&a.x, &a.h, &a.d}) *t = rows(c.dim);
  for (Tensor* t : {&a.q, &a.attn}) *t = rows(c.q_dim());
  for (Tensor* t : {&a.k, &a.v}) *t = rows(c.kv_dim());
  a.ffn = rows(c.ffn);
  if (gated) a.up = rows(c.ffn);
  return a;
}

}  // namespace vitrine
