// For tests: a tiny llama of random weights.
#pragma once

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "nn/test_model.h"

namespace vitrine::test {

struct TinyLlama {
  int vocab, context, eos;
  int kv_heads = 4;
  int window = 0;  // of every layer's attention; 0: none
  unsigned seed = 0;
  static constexpr int dim = 32, ffn = 48, heads = 4, head_dim = 8, layers = 2;
};

// The last token of the vocabulary poisons whatever it touches: its embedding is NaN.
inline std::shared_ptr<const ModelFile> make_tiny_llama(const TinyLlama& m) {
  std::mt19937 rng(m.seed);
  std::normal_distribution<float> normal(0, 0.35f);
  std::vector<TestTensor> tensors;
  auto add = [&](const std::string& name, std::vector<std::int64_t> shape, bool norm = false) {
    std::int64_t n = 1;
    for (std::int64_t d : shape) n *= d;
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& v : values) v = norm ? 1.0f : normal(rng);
    tensors.push_back({name, std::move(shape), std::move(values)});
  };
  add("model.embed_tokens.weight", {m.vocab, m.dim});
  for (int e = 0; e < m.dim; ++e) tensors[0].values[(m.vocab - 1) * m.dim + e] = NAN;
  for (int l = 0; l < m.layers; ++l) {
    std::string p = fmt::format("model.layers.{}.", l);
    add(p + "input_layernorm.weight", {m.dim}, true);
    add(p + "post_attention_layernorm.weight", {m.dim}, true);
    add(p + "self_attn.q_proj.weight", {m.heads * m.head_dim, m.dim});
    add(p + "self_attn.k_proj.weight", {m.kv_heads * m.head_dim, m.dim});
    add(p + "self_attn.v_proj.weight", {m.kv_heads * m.head_dim, m.dim});
    add(p + "self_attn.o_proj.weight", {m.dim, m.heads * m.head_dim});
    add(p + "mlp.gate_proj.weight", {m.ffn, m.dim});
    add(p + "mlp.up_proj.weight", {m.ffn, m.dim});
    add(p + "mlp.down_proj.weight", {m.dim, m.ffn});
  }
  add("model.norm.weight", {m.dim}, true);
  add("lm_head.weight", {m.vocab, m.dim});
  std::string config = fmt::format(
      R"({{"architectures":["{}"],"hidden_size":{},"intermediate_size":{},"num_hidden_layers":{},)"
      R"("num_attention_heads":{},"num_key_value_heads":{},"head_dim":{},"max_position_embeddings":{},)"
      R"("rms_norm_eps":1e-5,"hidden_act":"silu","vocab_size":{},"eos_token_id":{}{}}})",
      m.window > 0 ? "MistralForCausalLM" : "LlamaForCausalLM", m.dim, m.ffn, m.layers, m.heads,
      m.kv_heads, m.head_dim, m.context, m.vocab, m.eos,
      m.window > 0 ? fmt::format(",\"sliding_window\":{}", m.window) : "");
  return hf_model(config, tensors);
}

}  // namespace vitrine::test
