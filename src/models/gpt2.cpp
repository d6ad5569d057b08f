// GPT-2. HF: modeling_gpt2.py, whose Conv1D matrices are stored transposed.
// Pre-norm LayerNorm, learned positions, multi-head attention with q, k, v in one matrix, GELU.
#include "models/model.h"
#include "nn/decoder.h"

namespace vitrine {
namespace {

struct Gpt2 {
  Norm attn_norm;
  Attention attn;
  Norm ffn_norm;
  Mlp ffn;

  static DecoderConfig config(ConfigReader& r) {
    Key context{"context_length", "n_positions"};
    if (!r.has(context)) context.hf = "n_ctx";
    DecoderConfig c =
        read_decoder_config(r,
                            {.layers = {"block_count", "n_layer"},
                             .dim = {"embedding_length", "n_embd"},
                             .heads = {"attention.head_count", "n_head"},
                             .kv_heads = {},
                             .head_dim = {},
                             .ffn = {"feed_forward_length", "n_inner"},
                             .ffn_missing = 4,
                             .context = context,
                             .eps = {"attention.layer_norm_epsilon", "layer_norm_epsilon"}},
                            {.embedding = {"token_embd.weight", "transformer.wte.weight"},
                             .norm = {"output_norm", "transformer.ln_f"},
                             .hf_layers = "transformer.h"});
    c.norm = NormKind::kLayer;
    if (!r.boolean_or({"", "scale_attn_weights"}, true)) c.attention_scale = 1;
    r.only({"", "scale_attn_by_inverse_layer_idx"}, false);
    r.only({"", "add_cross_attention"}, false);
    c.activation = read_activation(r, "activation_function", Activation::kGeluTanh);
    return c;
  }

  static MatrixSource positions(WeightLoader& w, const DecoderConfig& c, int) {
    return w.matrix({"position_embd.weight", "transformer.wpe.weight"}, c.context, c.dim);
  }

  static Gpt2 bind(LayerLoader& l, const DecoderConfig& c) {
    const bool t = !l.w.gguf();
    MatrixSource qkv = l.w.matrix(l.weight("attn_qkv", "attn.c_attn"), 3 * c.dim, c.dim, t);
    std::vector<float> bias = l.w.floats_if_any(l.bias("attn_qkv", "attn.c_attn"), 3 * c.dim);
    return {.attn_norm = l.norm("attn_norm", "ln_1"),
            .attn = l.attention(qkv, bias, l.linear("attn_output", "attn.c_proj", c.dim, c.dim, t)),
            .ffn_norm = l.norm("ffn_norm", "ln_2"),
            .ffn = l.mlp("mlp.c_fc", "mlp.c_proj", t)};
  }

  void forward(Step& s) const {
    attn_norm(s.ops, s.h, s.x);
    attn(s, s.d, s.h);
    s.ops.add(s.x, s.x, s.d);
    ffn_norm(s.ops, s.h, s.x);
    ffn(s, s.d, s.h);
    s.ops.add(s.x, s.x, s.d);
  }
};

}  // namespace

extern const Arch kArch_gpt2;
const Arch kArch_gpt2{"gpt2", {"gpt2"}, {"GPT2LMHeadModel"}, Decoder<Gpt2>::load};

}  // namespace vitrine
