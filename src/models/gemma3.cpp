// Gemma 3, the text model. HF: modeling_gemma3.py.
// Gemma 2 with RMS norms of each head of q and k. Five of six layers have a sliding window and a
// rotary base of their own.
#include <cmath>

#include "models/model.h"
#include "nn/decoder.h"

namespace vitrine {
namespace {

struct Gemma3 {
  Norm attn_norm;
  Attention attn;
  Norm post_attn_norm, ffn_norm;
  GatedFfn ffn;
  Norm post_ffn_norm;

  static DecoderConfig config(ConfigReader& r) {
    DecoderKeys keys;
    keys.hf_missing = {.heads = 8, .kv_heads = 4, .head_dim = 256, .context = 131072, .eps = 1e-6f};
    DecoderConfig c = read_decoder_config(r, keys);
    c.embed_scale = std::sqrt(static_cast<float>(c.dim));
    c.rope = read_rope(r, c.head_dim, c.context, "full_attention", 1e6f);
    c.local_rope = read_rope(r, c.head_dim, c.context, "sliding_attention", 1e4f);
    int window = r.nullable_integer_or({"attention.sliding_window", "sliding_window"}, 0, 1 << 28,
                                       r.gguf() ? 0 : 4096);
    c.windows = read_windows(r, c.layers, window, [](int i) { return (i + 1) % 6 != 0; });
    c.attention_cap = r.number_or({"", "attn_logit_softcapping"}, 0, 1e6, 0);
    c.final_cap = r.number_or({"final_logit_softcapping", "final_logit_softcapping"}, 0, 1e6, 0);
    // GGUF files do not say; only the 27B has another width than that of a head.
    float query_width = c.layers == 62 ? c.dim / c.heads : c.head_dim;
    if (!r.gguf()) query_width = r.number_or({"", "query_pre_attn_scalar"}, 1e-3, 1e6, 256);
    c.attention_scale = 1 / std::sqrt(query_width);
    r.only({"", "use_bidirectional_attention"}, false);
    c.activation = read_activation(r, "hidden_activation", Activation::kGeluTanh);
    c.norm_offset = r.gguf() ? 0 : 1;
    return c;
  }

  static Gemma3 bind(LayerLoader& l, const DecoderConfig& c) {
    Gemma3 layer{.attn_norm = l.norm("attn_norm", "input_layernorm"),
                 .attn = l.attention(),
                 .post_attn_norm = l.norm("post_attention_norm", "post_attention_layernorm"),
                 .ffn_norm = l.norm("ffn_norm", "pre_feedforward_layernorm"),
                 .ffn = l.gated_ffn(),
                 .post_ffn_norm = l.norm("post_ffw_norm", "post_feedforward_layernorm")};
    layer.attn.q_norm = l.norm("attn_q_norm", "self_attn.q_norm", c.head_dim);
    layer.attn.k_norm = l.norm("attn_k_norm", "self_attn.k_norm", c.head_dim);
    return layer;
  }

  void forward(Step& s) const {
    attn_norm(s.ops, s.h, s.x);
    attn(s, s.d, s.h);
    post_attn_norm(s.ops, s.d, s.d);
    s.ops.add_rms_norm(s.h, s.x, s.d, ffn_norm.w, ffn_norm.eps);
    ffn(s, s.d, s.h);
    post_ffn_norm(s.ops, s.d, s.d);
    s.ops.add(s.x, s.x, s.d);
  }
};

}  // namespace

extern const Arch kArch_gemma3;
const Arch kArch_gemma3{"gemma3",
                        {"gemma3"},
                        {"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"},
                        Decoder<Gemma3>::load};

}  // namespace vitrine
