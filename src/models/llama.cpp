// Llama 1 to 3 (and the GGUF files of Mistral, which call themselves llama). HF: modeling_llama.py.
// Pre-norm RMS, grouped-query attention with rotary positions, SwiGLU.
#include "models/model.h"
#include "nn/decoder.h"

namespace vitrine {
namespace {

struct Llama {
  Norm attn_norm;
  Attention attn;
  Norm ffn_norm;
  GatedFfn ffn;

  static DecoderConfig config(ConfigReader& r) {
    DecoderConfig c = read_decoder_config(r);
    c.rope = read_rope(r, c.head_dim, c.context);
    c.windows.assign(c.layers, r.integer_or({"attention.sliding_window", ""}, 0, 1 << 28, 0));
    c.activation = read_activation(r, "hidden_act", Activation::kSilu);
    c.adjacent_pairs = r.gguf();
    // Pairs are neighbours over the whole head; undoing that needs all of it rotated.
    if (c.adjacent_pairs && c.rope.dims != c.head_dim)
      r.fail(make_error(ErrorCode::kUnsupported,
                        "llama.rope.dimension_count: found {}, only the head's width, {}, is known",
                        c.rope.dims, c.head_dim));
    return c;
  }

  static Llama bind(LayerLoader& l, const DecoderConfig&) {
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

extern const Arch kArch_llama;
const Arch kArch_llama{"llama", {"llama"}, {"LlamaForCausalLM"}, Decoder<Llama>::load};

}  // namespace vitrine
