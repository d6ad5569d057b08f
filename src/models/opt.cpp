// OPT, from HF folders. HF: modeling_opt.py.
// LayerNorm before attention and MLP (or after the sums, as in some sizes), learned positions,
// multi-head attention, ReLU.
#include "models/model.h"
#include "nn/decoder.h"

namespace vitrine {
namespace {

struct Config : DecoderConfig {
  bool norm_first = true;
};

struct Opt {
  bool norm_first;
  Norm attn_norm;
  Attention attn;
  Norm ffn_norm;
  Mlp ffn;

  static Config config(ConfigReader& r) {
    Config c{
        read_decoder_config(r, {.kv_heads = {}, .head_dim = {}, .ffn = {"", "ffn_dim"}, .eps = {}},
                            {.embedding = {"", "model.decoder.embed_tokens.weight"},
                             .norm = {"", "model.decoder.final_layer_norm"},
                             .hf_layers = "model.decoder.layers"})};
    int width = r.integer_or({"", "word_embed_proj_dim"}, 1, 1 << 18, c.dim);
    if (width != c.dim)
      r.fail(make_error(ErrorCode::kUnsupported,
                        "word_embed_proj_dim: found {}, only hidden_size ({}) is supported", width,
                        c.dim));
    r.only({"", "layer_norm_elementwise_affine"}, true);
    c.norm = NormKind::kLayer;
    c.norm_first = r.boolean_or({"", "do_layer_norm_before"}, true);
    c.final_norm = c.norm_first && !r.boolean_or({"", "_remove_final_layer_norm"}, false);
    c.activation = read_activation(r, "activation_function", Activation::kRelu);
    return c;
  }

  static MatrixSource positions(WeightLoader& w, const Config& c, int) {
    constexpr int kUnused = 2;  // rows at the table's beginning
    Name name{"", "model.decoder.embed_positions.weight"};
    return WeightLoader::slice(w.matrix(name, c.context + kUnused, c.dim), kUnused, c.context);
  }

  static Opt bind(LayerLoader& l, const Config& c) {
    return {.norm_first = c.norm_first,
            .attn_norm = l.norm("", "self_attn_layer_norm"),
            .attn = l.attention("self_attn.out_proj"),
            .ffn_norm = l.norm("", "final_layer_norm"),
            .ffn = l.mlp("fc1", "fc2")};
  }

  void forward(Step& s) const {
    if (norm_first) attn_norm(s.ops, s.h, s.x);
    attn(s, s.d, norm_first ? s.h : s.x);
    s.ops.add(s.x, s.x, s.d);
    if (norm_first)
      ffn_norm(s.ops, s.h, s.x);
    else
      attn_norm(s.ops, s.x, s.x);
    ffn(s, s.d, norm_first ? s.h : s.x);
    s.ops.add(s.x, s.x, s.d);
    if (!norm_first) ffn_norm(s.ops, s.x, s.x);
  }
};

}  // namespace

extern const Arch kArch_opt;
const Arch kArch_opt{"opt", {}, {"OPTForCausalLM"}, Decoder<Opt>::load};

}  // namespace vitrine
