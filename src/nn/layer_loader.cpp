#include "nn/layer_loader.h"

#include <utility>

namespace vitrine {
namespace {

Name layer_name(const LayerLoader& l, std::string_view gguf, std::string_view hf,
                std::string_view end) {
  Name name;
  if (!gguf.empty()) name.gguf = fmt::format("blk.{}.{}.{}", l.layer, gguf, end);
  if (!hf.empty()) name.hf = fmt::format("{}.{}.{}.{}", l.c.names.hf_layers, l.layer, hf, end);
  return name;
}

std::vector<float> slice(const std::vector<float>& v, int first, int n) {
  if (v.empty()) return {};
  return {v.begin() + first, v.begin() + first + n};
}

}  // namespace

Name LayerLoader::weight(std::string_view gguf, std::string_view hf) const {
  return layer_name(*this, gguf, hf, "weight");
}

Name LayerLoader::bias(std::string_view gguf, std::string_view hf) const {
  return layer_name(*this, gguf, hf, "bias");
}

Linear LayerLoader::linear(std::string_view gguf, std::string_view hf, int rows, int cols,
                           bool transposed) {
  return w.linear(weight(gguf, hf), rows, cols, bias(gguf, hf), transposed);
}

Norm LayerLoader::norm(std::string_view gguf, std::string_view hf, int n) {
  return w.norm(c.norm, weight(gguf, hf), n, c.eps, bias(gguf, hf), c.norm_offset);
}

Linear LayerLoader::rotary(MatrixSource m, std::vector<float> bias, int heads) {
  if (c.adjacent_pairs) {
    m = WeightLoader::unpermute_rotary(m, heads, c.head_dim);
    WeightLoader::unpermute_rotary(bias, heads, c.head_dim);
  }
  return w.linear(m, std::move(bias));
}

Attention LayerLoader::empty_attention() const {
  return {.heads = c.heads,
          .kv_heads = c.kv_heads,
          .head_dim = c.head_dim,
          .params = {c.attention_scale, c.window(layer), c.attention_cap}};
}

Attention LayerLoader::attention(std::string_view hf_out) {
  Name fused = weight("attn_qkv", "self_attn.qkv_proj");
  if (w.has(fused)) {
    int rows = c.q_dim() + 2 * c.kv_dim();
    std::vector<float> b = w.floats_if_any(bias("attn_qkv", "self_attn.qkv_proj"), rows);
    return attention(w.matrix(fused, rows, c.dim), b,
                     linear("attn_output", hf_out, c.dim, c.q_dim()));
  }
  auto heads_of = [&](std::string_view gguf, std::string_view hf, int heads) {
    int rows = heads * c.head_dim;
    return rotary(w.matrix(weight(gguf, hf), rows, c.dim), w.floats_if_any(bias(gguf, hf), rows),
                  heads);
  };
  Attention a = empty_attention();
  a.q = heads_of("attn_q", "self_attn.q_proj", c.heads);
  a.k = heads_of("attn_k", "self_attn.k_proj", c.kv_heads);
  a.v = linear("attn_v", "self_attn.v_proj", c.kv_dim(), c.dim);
  a.o = linear("attn_output", hf_out, c.dim, c.q_dim());
  return a;
}

Attention LayerLoader::attention(const MatrixSource& qkv, const std::vector<float>& bias,
                                 Linear out) {
  int q = c.q_dim(), kv = c.kv_dim();
  Attention a = empty_attention();
  a.q = rotary(WeightLoader::slice(qkv, 0, q), slice(bias, 0, q), c.heads);
  a.k = rotary(WeightLoader::slice(qkv, q, kv), slice(bias, q, kv), c.kv_heads);
  a.v = w.linear(WeightLoader::slice(qkv, q + kv, kv), slice(bias, q + kv, kv));
  a.o = std::move(out);
  return a;
}

GatedFfn LayerLoader::gated_ffn() {
  GatedFfn f{.activation = c.activation};
  f.gate = linear("ffn_gate", "mlp.gate_proj", c.ffn, c.dim);
  f.up = linear("ffn_up", "mlp.up_proj", c.ffn, c.dim);
  f.down = linear("ffn_down", "mlp.down_proj", c.dim, c.ffn);
  return f;
}

GatedFfn LayerLoader::fused_gated_ffn() {
  MatrixSource m = w.matrix(weight("ffn_up", "mlp.gate_up_proj"), 2 * c.ffn, c.dim);
  std::vector<float> b = w.floats_if_any(bias("ffn_up", "mlp.gate_up_proj"), 2 * c.ffn);
  GatedFfn f{.activation = c.activation};
  f.gate = w.linear(WeightLoader::slice(m, 0, c.ffn), slice(b, 0, c.ffn));
  f.up = w.linear(WeightLoader::slice(m, c.ffn, c.ffn), slice(b, c.ffn, c.ffn));
  f.down = linear("ffn_down", "mlp.down_proj", c.dim, c.ffn);
  return f;
}

Mlp LayerLoader::mlp(std::string_view hf_up, std::string_view hf_down, bool transposed) {
  return {.activation = c.activation,
          .up = linear("ffn_up", hf_up, c.ffn, c.dim, transposed),
          .down = linear("ffn_down", hf_down, c.dim, c.ffn, transposed)};
}

}  // namespace vitrine
