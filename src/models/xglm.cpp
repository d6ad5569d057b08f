// XGLM, from HF folders. HF: modeling_xglm.py.
// Pre-norm LayerNorm, sinusoidal positions, embeddings scaled by sqrt(E), multi-head attention,
// GELU.
#include <cmath>

#include "models/model.h"
#include "nn/decoder.h"

namespace vitrine {
namespace {

struct Config : DecoderConfig {
  int pad_id = 0;
};

constexpr std::int64_t kMaxPositionValues = 1 << 26;

struct Xglm {
  Norm attn_norm;
  Attention attn;
  Norm ffn_norm;
  Mlp ffn;

  static Config config(ConfigReader& r) {
    Config c{read_decoder_config(r,
                                 {.layers = {"", "num_layers"},
                                  .dim = {"", "d_model"},
                                  .heads = {"", "attention_heads"},
                                  .kv_heads = {},
                                  .head_dim = {},
                                  .ffn = {"", "ffn_dim"},
                                  .eps = {}},
                                 {.norm = {"", "model.layer_norm"}})};
    c.norm = NormKind::kLayer;
    if (r.boolean_or({"", "scale_embedding"}, true))
      c.embed_scale = std::sqrt(static_cast<float>(c.dim));
    c.pad_id = r.integer_or({"", "pad_token_id"}, 0, 1 << 28, 1);
    r.only({"", "add_cross_attention"}, false);
    c.activation = read_activation(r, "activation_function", Activation::kGelu);
    if (c.dim < 4 || c.dim % 2 != 0)
      r.fail(make_error(ErrorCode::kUnsupported, "d_model: found {}, must be even and at least 4",
                        c.dim));
    if (static_cast<std::int64_t>(c.context) * c.dim > kMaxPositionValues)
      r.fail(make_error(ErrorCode::kTooLarge, "max_position_embeddings: found {}, at most {}",
                        c.context, kMaxPositionValues / c.dim));
    return c;
  }

  // Position p is row p + 2 of HF's table: sines of all frequencies, then cosines; the row whose
  // number is that of the padding token is zero.
  static MatrixSource positions(WeightLoader&, const Config& c, int context) {
    int half = c.dim / 2;
    auto step = static_cast<float>(std::log(10000.0) / (half - 1));
    std::vector<float> table(static_cast<std::size_t>(context) * c.dim);
    for (int p = 0; p < context; ++p) {
      int row = p + 2;
      if (row == c.pad_id) continue;
      float* out = table.data() + static_cast<std::size_t>(p) * c.dim;
      for (int i = 0; i < half; ++i) {
        float angle = static_cast<float>(row) * std::exp(static_cast<float>(i) * -step);
        out[i] = std::sin(angle);
        out[half + i] = std::cos(angle);
      }
    }
    return WeightLoader::computed("sinusoidal positions", std::move(table), c.dim);
  }

  static Xglm bind(LayerLoader& l, const Config&) {
    return {.attn_norm = l.norm("", "self_attn_layer_norm"),
            .attn = l.attention("self_attn.out_proj"),
            .ffn_norm = l.norm("", "final_layer_norm"),
            .ffn = l.mlp("fc1", "fc2")};
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

extern const Arch kArch_xglm;
const Arch kArch_xglm{"xglm", {}, {"XGLMForCausalLM"}, Decoder<Xglm>::load};

}  // namespace vitrine
