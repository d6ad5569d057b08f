// Phi 3, 3.5 and 4, dense. HF: modeling_phi3.py.
// Llama with q, k, v in one matrix and gate, up in another; partial rotary; longrope; a sliding
// window in every layer where asked for. HF switches from longrope's short to its long factors when
// a sequence grows past the original context; here the context that is served decides, once.
#include "models/model.h"
#include "nn/decoder.h"

namespace vitrine {
namespace {

struct Phi3 {
  Norm attn_norm;
  Attention attn;
  Norm ffn_norm;
  GatedFfn ffn;

  static DecoderConfig config(ConfigReader& r) {
    DecoderConfig c = read_decoder_config(r);
    c.rope = read_rope(r, c.head_dim, c.context);
    c.windows.assign(c.layers,
                     r.integer_or({"attention.sliding_window", "sliding_window"}, 0, 1 << 28, 0));
    c.activation = read_activation(r, "hidden_act", Activation::kSilu);
    return c;
  }

  static Phi3 bind(LayerLoader& l, const DecoderConfig&) {
    return {.attn_norm = l.norm("attn_norm", "input_layernorm"),
            .attn = l.attention(),
            .ffn_norm = l.norm("ffn_norm", "post_attention_layernorm"),
            .ffn = l.fused_gated_ffn()};
  }

  void forward(Step& s) const {
    attn.residual(s, attn_norm);
    ffn.residual(s, ffn_norm);
  }
};

}  // namespace

extern const Arch kArch_phi3;
const Arch kArch_phi3{"phi3", {"phi3"}, {"Phi3ForCausalLM"}, Decoder<Phi3>::load};

}  // namespace vitrine
