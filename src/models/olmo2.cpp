// OLMo 2. HF: modeling_olmo2.py.
// Post-norm: attention and SwiGLU read the residual as it is, their outputs are RMS normed before
// they are added. RMS norms of the whole of q and of k, all heads together.
#include "models/model.h"
#include "nn/decoder.h"

namespace vitrine {
namespace {

struct Olmo2 {
  Attention attn;
  Norm post_attn_norm;
  GatedFfn ffn;
  Norm post_ffn_norm;

  static DecoderConfig config(ConfigReader& r) {
    DecoderConfig c = read_decoder_config(r);
    c.rope = read_rope(r, c.head_dim, c.context);
    // OLMo 3 calls itself olmo2 in GGUF files.
    r.none({"attention.sliding_window", "sliding_window"}, "sliding windows are");
    c.activation = read_activation(r, "hidden_act", Activation::kSilu);
    return c;
  }

  static Olmo2 bind(LayerLoader& l, const DecoderConfig& c) {
    Olmo2 layer{.attn = l.attention(),
                .post_attn_norm = l.norm("post_attention_norm", "post_attention_layernorm"),
                .ffn = l.gated_ffn(),
                .post_ffn_norm = l.norm("post_ffw_norm", "post_feedforward_layernorm")};
    layer.attn.q_norm = l.norm("attn_q_norm", "self_attn.q_norm", c.q_dim());
    layer.attn.k_norm = l.norm("attn_k_norm", "self_attn.k_norm", c.kv_dim());
    return layer;
  }

  void forward(Step& s) const {
    attn(s, s.d, s.x);
    post_attn_norm(s.ops, s.h, s.d);
    s.ops.add(s.x, s.x, s.h);
    ffn(s, s.d, s.x);
    post_ffn_norm(s.ops, s.h, s.d);
    s.ops.add(s.x, s.x, s.h);
  }
};

}  // namespace

extern const Arch kArch_olmo2;
const Arch kArch_olmo2{"olmo2", {"olmo2"}, {"Olmo2ForCausalLM"}, Decoder<Olmo2>::load};

}  // namespace vitrine
