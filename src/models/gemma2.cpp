// Gemma 2. HF: modeling_gemma2.py.
// RMS norms before and after attention and the gated GELU, each with weights 1 + w (HF stores w,
// GGUF the sum); soft caps on attention scores and logits; every other layer has a sliding window.
#include <cmath>

#include "models/model.h"
#include "nn/decoder.h"

namespace vitrine {
namespace {

struct Gemma2 {
  Norm attn_norm;
  Attention attn;
  Norm post_attn_norm, ffn_norm;
  GatedFfn ffn;
  Norm post_ffn_norm;

  static DecoderConfig config(ConfigReader& r) {
    DecoderConfig c = read_decoder_config(r);
    c.embed_scale = std::sqrt(static_cast<float>(c.dim));
    c.rope = read_rope(r, c.head_dim, c.context);
    int window =
        r.nullable_integer_or({"attention.sliding_window", "sliding_window"}, 0, 1 << 28, 4096);
    c.windows = read_windows(r, c.layers, window, [](int i) { return i % 2 == 0; });
    c.attention_cap =
        r.nullable_number_or({"attn_logit_softcapping", "attn_logit_softcapping"}, 0, 1e6, 50);
    c.final_cap =
        r.nullable_number_or({"final_logit_softcapping", "final_logit_softcapping"}, 0, 1e6, 30);
    // GGUF files do not say; only the 27B has another width than that of a head.
    float query_width = c.layers == 46 ? c.dim / c.heads : c.head_dim;
    if (!r.gguf()) query_width = r.number_or({"", "query_pre_attn_scalar"}, 1e-3, 1e6, 256);
    c.attention_scale = 1 / std::sqrt(query_width);
    r.only({"", "use_bidirectional_attention"}, false);
    c.activation = read_activation(r, "hidden_activation", Activation::kGeluTanh);
    c.norm_offset = r.gguf() ? 0 : 1;
    return c;
  }

  static Gemma2 bind(LayerLoader& l, const DecoderConfig&) {
    return {.attn_norm = l.norm("attn_norm", "input_layernorm"),
            .attn = l.attention(),
            .post_attn_norm = l.norm("post_attention_norm", "post_attention_layernorm"),
            .ffn_norm = l.norm("ffn_norm", "pre_feedforward_layernorm"),
            .ffn = l.gated_ffn(),
            .post_ffn_norm = l.norm("post_ffw_norm", "post_feedforward_layernorm")};
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

extern const Arch kArch_gemma2;
const Arch kArch_gemma2{"gemma2", {"gemma2"}, {"Gemma2ForCausalLM"}, Decoder<Gemma2>::load};

}  // namespace vitrine
