// GPT-NeoX and Pythia. HF: modeling_gpt_neox.py.
// LayerNorm, rotary positions on a part of each head, GELU; attention and MLP both read the same
// residual (parallel) or one after the other.
#include "models/model.h"
#include "nn/decoder.h"

namespace vitrine {
namespace {

struct Config : DecoderConfig {
  bool parallel = true;
};

// HF keeps q, k, v of each head together, GGUF those of all heads: (head, 3, D) to (3, head, D).
template <typename T>
std::vector<T> unmix(const std::vector<T>& rows, const Config& c) {
  std::vector<T> out(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::size_t at = i % c.head_dim, part = i / c.head_dim % 3, head = i / c.head_dim / 3;
    out[(part * c.heads + head) * c.head_dim + at] = rows[i];
  }
  return out;
}

struct GptNeox {
  bool parallel;
  Norm attn_norm;
  Attention attn;
  Norm ffn_norm;
  Mlp ffn;

  static Config config(ConfigReader& r) {
    Config c{read_decoder_config(
        r,
        {.kv_heads = {}, .head_dim = {}, .eps = {"attention.layer_norm_epsilon", "layer_norm_eps"}},
        {.embedding = {"token_embd.weight", "gpt_neox.embed_in.weight"},
         .norm = {"output_norm", "gpt_neox.final_layer_norm"},
         .head = {"output.weight", "embed_out.weight"},
         .hf_layers = "gpt_neox.layers"})};
    c.norm = NormKind::kLayer;
    c.rope = read_rope(r, c.head_dim, c.context);
    c.parallel = r.boolean_or({"use_parallel_residual", "use_parallel_residual"}, true);
    c.activation = read_activation(r, "hidden_act", Activation::kGelu);
    return c;
  }

  static GptNeox bind(LayerLoader& l, const Config& c) {
    const char* hf = "attention.query_key_value";
    MatrixSource qkv = l.w.matrix(l.weight("attn_qkv", hf), 3 * c.dim, c.dim);
    std::vector<float> bias = l.w.floats_if_any(l.bias("attn_qkv", hf), 3 * c.dim);
    if (!l.w.gguf()) {
      qkv.row_data = unmix(qkv.row_data, c);
      bias = unmix(bias, c);
    }
    return {
        .parallel = c.parallel,
        .attn_norm = l.norm("attn_norm", "input_layernorm"),
        .attn = l.attention(qkv, bias, l.linear("attn_output", "attention.dense", c.dim, c.dim)),
        .ffn_norm = l.norm("ffn_norm", "post_attention_layernorm"),
        .ffn = l.mlp("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")};
  }

  void forward(Step& s) const {
    attn_norm(s.ops, s.h, s.x);
    attn(s, s.d, s.h);
    if (parallel) ffn_norm(s.ops, s.h, s.x);
    s.ops.add(s.x, s.x, s.d);
    if (!parallel) ffn_norm(s.ops, s.h, s.x);
    ffn(s, s.d, s.h);
    s.ops.add(s.x, s.x, s.d);
  }
};

}  // namespace

extern const Arch kArch_gpt_neox;
const Arch kArch_gpt_neox{"gpt_neox", {"gptneox"}, {"GPTNeoXForCausalLM"}, Decoder<GptNeox>::load};

}  // namespace vitrine
