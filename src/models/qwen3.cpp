// Qwen 3, dense. HF: modeling_qwen3.py.
// Llama with RMS norms of each head of q and k; where asked for, sliding windows from some layer
// on.
#include "models/model.h"
#include "nn/decoder.h"

namespace vitrine {
namespace {

struct Qwen3 {
  Norm attn_norm;
  Attention attn;
  Norm ffn_norm;
  GatedFfn ffn;

  static DecoderConfig config(ConfigReader& r) {
    DecoderConfig c = read_decoder_config(r);
    c.rope = read_rope(r, c.head_dim, c.context);
    int window = r.nullable_integer_or({"", "sliding_window"}, 1, 1 << 28, 4096);
    int first = r.integer_or({"", "max_window_layers"}, 0, 1 << 20, 28);
    if (!r.boolean_or({"", "use_sliding_window"}, false)) window = 0;
    c.windows = read_windows(r, c.layers, window, [&](int i) { return i >= first; });
    c.activation = read_activation(r, "hidden_act", Activation::kSilu);
    return c;
  }

  static Qwen3 bind(LayerLoader& l, const DecoderConfig& c) {
    Qwen3 layer{.attn_norm = l.norm("attn_norm", "input_layernorm"),
                .attn = l.attention(),
                .ffn_norm = l.norm("ffn_norm", "post_attention_layernorm"),
                .ffn = l.gated_ffn()};
    layer.attn.q_norm = l.norm("attn_q_norm", "self_attn.q_norm", c.head_dim);
    layer.attn.k_norm = l.norm("attn_k_norm", "self_attn.k_norm", c.head_dim);
    return layer;
  }

  void forward(Step& s) const {
    attn.residual(s, attn_norm);
    ffn.residual(s, ffn_norm);
  }
};

}  // namespace

extern const Arch kArch_qwen3;
const Arch kArch_qwen3{"qwen3", {"qwen3"}, {"Qwen3ForCausalLM"}, Decoder<Qwen3>::load};

}  // namespace vitrine
