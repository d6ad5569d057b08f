// Qwen 2 and 2.5. HF: modeling_qwen2.py.
// Llama with biases on q, k and v; where asked for, sliding windows from some layer on.
#include "models/model.h"
#include "nn/decoder.h"

namespace vitrine {
namespace {

struct Qwen2 {
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

  static Qwen2 bind(LayerLoader& l, const DecoderConfig&) {
    return {.attn_norm = l.norm("attn_norm", "input_layernorm"),
            .attn = l.attention(),
            .ffn_norm = l.norm("ffn_norm", "post_attention_layernorm"),
            .ffn = l.gated_ffn()};
  }

  void forward(Step& s) const {
    attn.residual(s, attn_norm);
    ffn.residual(s, ffn_norm);
  }
};

}  // namespace

extern const Arch kArch_qwen2;
const Arch kArch_qwen2{"qwen2", {"qwen2"}, {"Qwen2ForCausalLM"}, Decoder<Qwen2>::load};

}  // namespace vitrine
