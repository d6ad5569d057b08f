// XGLM, from HF folders. HF: modeling_xglm.py.
// Pre-norm LayerNorm, sinusoidal positions, embeddings scaled by sqrt(E), multi-head attention,
// GELU.
#include <algorithm>
#include <cmath>

#include "models/model.h"
#include "nn/layer_loader.h"

namespace vitrine {
namespace {

struct Config : DecoderConfig {
  float embed_scale = 1;
  int pad_id = 0;
  Activation activation = Activation::kGelu;
};

const Name kEmbedding{"", "model.embed_tokens.weight"};
constexpr std::int64_t kMaxPositionValues = 1 << 26;

Result<Config> read_config(const ModelFile& file) {
  ConfigReader r(file);
  Config c{read_decoder_config(r, kEmbedding,
                               {.layers = {"", "num_layers"},
                                .dim = {"", "d_model"},
                                .heads = {"", "attention_heads"},
                                .kv_heads = {},
                                .head_dim = {},
                                .ffn = {"", "ffn_dim"},
                                .eps = {}})};
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
  VT_RETURN_IF_ERROR(r.status());
  return c;
}

struct Layer {
  Norm attn_norm, ffn_norm;
  Attention attn;
  Mlp ffn;
};

Layer bind_layer(WeightLoader& w, const Config& c, int i) {
  LayerLoader l{w, c, i};
  AttentionParams params{.scale = 1 / std::sqrt(static_cast<float>(c.head_dim))};
  return {.attn_norm = l.norm("", "self_attn_layer_norm"),
          .ffn_norm = l.norm("", "final_layer_norm"),
          .attn = l.attention(params, "self_attn.out_proj"),
          .ffn = {.activation = c.activation,
                  .up = l.linear("", "fc1", c.ffn, c.dim),
                  .down = l.linear("", "fc2", c.dim, c.ffn)}};
}

// Position p is row p + 2 of HF's table: sines of all frequencies, then cosines; the row whose
// number is that of the padding token is zero.
MatrixSource sinusoids(const Config& c, int positions) {
  int half = c.dim / 2;
  auto step = static_cast<float>(std::log(10000.0) / (half - 1));
  std::vector<float> table(static_cast<std::size_t>(positions) * c.dim);
  for (int p = 0; p < positions; ++p) {
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

class Xglm final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(const ModelFile& file, Device& device,
                                             const ModelOptions& options);
  CacheSpec cache_spec(int) const override { return {c_.kv_heads, c_.head_dim}; }
  void forward(Ops& ops, const ModelInput& in, Tensor hidden) override;
  void head(Ops& ops, Tensor logits, Tensor hidden) override { head_(ops, logits, hidden); }

 private:
  explicit Xglm(Config c) : Model(model_info("xglm", c)), c_(std::move(c)) {}

  Config c_;
  std::shared_ptr<Weight> embed_, positions_;  // (V,E), (context,E)
  std::vector<Layer> layers_;
  Norm norm_;
  Linear head_;  // (V,E)
  Stream stream_;
  Attention::Scratch attn_;
  Mlp::Scratch ffn_;
};

Result<std::unique_ptr<Model>> Xglm::load(const ModelFile& file, Device& device,
                                          const ModelOptions& options) {
  VT_TRY(Config c, read_config(file));
  std::unique_ptr<Xglm> m(new Xglm(c));
  WeightLoader w(file, device, options.progress);
  MatrixSource table = w.matrix(kEmbedding, c.vocab, c.dim);
  m->embed_ = w.table(table);
  int positions = options.context > 0 ? std::min(options.context, c.context) : c.context;
  m->positions_ = w.table(sinusoids(c, positions));
  for (int i = 0; i < c.layers; ++i) m->layers_.push_back(bind_layer(w, c, i));
  m->norm_ = w.norm({"", "model.layer_norm.weight"}, c.dim, c.eps, {"", "model.layer_norm.bias"});
  m->head_ = w.head({"", "lm_head.weight"}, table);
  int T = options.max_tokens;
  m->stream_ = Stream::scratch(w, T, c.dim);
  m->attn_ = Attention::scratch(w, T, c.q_dim(), c.kv_dim());
  m->ffn_ = Mlp::scratch(w, T, c.ffn);
  VT_RETURN_IF_ERROR(m->adopt(w));
  return std::unique_ptr<Model>(std::move(m));
}

void Xglm::forward(Ops& ops, const ModelInput& in, Tensor hidden) {
  auto [x, h, d] = stream_.rows(in.tokens());  // (T,E)
  ops.embed(x, *embed_, in.ids, c_.embed_scale);
  ops.embed(d, *positions_, in.positions);
  ops.add(x, x, d);
  for (int i = 0; i < c_.layers; ++i) {
    const Layer& l = layers_[i];
    l.attn_norm.layer(ops, h, x);
    l.attn(ops, in, i, d, h, {}, attn_);
    ops.add(x, x, d);
    l.ffn_norm.layer(ops, h, x);
    l.ffn(ops, d, h, ffn_);
    ops.add(x, x, d);
  }
  ops.gather_rows(hidden, x, in.out_rows);
  norm_.layer(ops, hidden, hidden);
}

}  // namespace

extern const Arch kArch_xglm;
const Arch kArch_xglm{"xglm", {}, {"XGLMForCausalLM"}, Xglm::load};

}  // namespace vitrine
