// Mistral, from HF folders; its GGUF files call themselves llama. HF: modeling_mistral.py.
// Llama with a sliding window in every layer.
#include "models/model.h"
#include "nn/decoder.h"

namespace vitrine {
namespace {

struct Mistral {
  Norm attn_norm;
  Attention attn;
  Norm ffn_norm;
  GatedFfn ffn;

  static DecoderConfig config(ConfigReader& r) {
    DecoderConfig c = read_decoder_config(r);
    c.rope = read_rope(r, c.head_dim, c.context);
    c.windows.assign(c.layers, r.nullable_integer_or({"", "sliding_window"}, 1, 1 << 28, 4096));
    c.activation = read_activation(r, "hidden_act", Activation::kSilu);
    return c;
  }

  static Mistral bind(LayerLoader& l, const DecoderConfig&) {
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

extern const Arch kArch_mistral;
const Arch kArch_mistral{"mistral", {}, {"MistralForCausalLM"}, Decoder<Mistral>::load};

}  // namespace vitrine
