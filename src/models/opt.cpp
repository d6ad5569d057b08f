// OPT, from HF folders. HF: modeling_opt.py.
// LayerNorm before attention and MLP (or after the sums, as in some sizes), learned positions,
// multi-head attention, ReLU.
#include <cmath>

#include "models/model.h"
#include "nn/layer_loader.h"

namespace vitrine {
namespace {

struct Config : DecoderConfig {
  bool norm_first = true, final_norm = true;
  Activation activation = Activation::kRelu;
};

const Name kEmbedding{"", "model.decoder.embed_tokens.weight"};
// The position table begins with rows that no position uses.
constexpr int kUnusedPositions = 2;

Result<Config> read_config(const ModelFile& file) {
  ConfigReader r(file);
  Config c{read_decoder_config(
      r, kEmbedding, {.kv_heads = {}, .head_dim = {}, .ffn = {"", "ffn_dim"}, .eps = {}})};
  int width = r.integer_or({"", "word_embed_proj_dim"}, 1, 1 << 18, c.dim);
  if (width != c.dim)
    r.fail(make_error(ErrorCode::kUnsupported,
                      "word_embed_proj_dim: found {}, only hidden_size ({}) is supported", width,
                      c.dim));
  r.only({"", "layer_norm_elementwise_affine"}, true);
  c.norm_first = r.boolean_or({"", "do_layer_norm_before"}, true);
  c.final_norm = c.norm_first && !r.boolean_or({"", "_remove_final_layer_norm"}, false);
  c.activation = read_activation(r, "activation_function", Activation::kRelu);
  VT_RETURN_IF_ERROR(r.status());
  return c;
}

struct Layer {
  Norm attn_norm, ffn_norm;
  Attention attn;
  Mlp ffn;
};

Layer bind_layer(WeightLoader& w, const Config& c, int i) {
  LayerLoader l{w, c, i, "model.decoder.layers"};
  AttentionParams params{.scale = 1 / std::sqrt(static_cast<float>(c.head_dim))};
  return {.attn_norm = l.norm("", "self_attn_layer_norm"),
          .ffn_norm = l.norm("", "final_layer_norm"),
          .attn = l.attention(params, "self_attn.out_proj"),
          .ffn = {.activation = c.activation,
                  .up = l.linear("", "fc1", c.ffn, c.dim),
                  .down = l.linear("", "fc2", c.dim, c.ffn)}};
}

class Opt final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(const ModelFile& file, Device& device,
                                             const ModelOptions& options);
  CacheSpec cache_spec(int) const override { return {c_.kv_heads, c_.head_dim}; }
  void forward(Ops& ops, const ModelInput& in, Tensor hidden) override;
  void head(Ops& ops, Tensor logits, Tensor hidden) override { head_(ops, logits, hidden); }

 private:
  explicit Opt(Config c) : Model(model_info("opt", c)), c_(std::move(c)) {}

  Config c_;
  std::shared_ptr<Weight> embed_, positions_;  // (V,E), (context,E)
  std::vector<Layer> layers_;
  Norm norm_;
  Linear head_;  // (V,E)
  Stream stream_;
  Attention::Scratch attn_;
  Mlp::Scratch ffn_;
};

Result<std::unique_ptr<Model>> Opt::load(const ModelFile& file, Device& device,
                                         const ModelOptions& options) {
  VT_TRY(Config c, read_config(file));
  std::unique_ptr<Opt> m(new Opt(c));
  WeightLoader w(file, device, options.progress);
  MatrixSource table = w.matrix(kEmbedding, c.vocab, c.dim);
  m->embed_ = w.table(table);
  MatrixSource positions =
      w.matrix({"", "model.decoder.embed_positions.weight"}, c.context + kUnusedPositions, c.dim);
  m->positions_ = w.table(WeightLoader::slice(positions, kUnusedPositions, c.context));
  for (int i = 0; i < c.layers; ++i) m->layers_.push_back(bind_layer(w, c, i));
  if (c.final_norm)
    m->norm_ = w.norm({"", "model.decoder.final_layer_norm.weight"}, c.dim, c.eps,
                      {"", "model.decoder.final_layer_norm.bias"});
  m->head_ = w.head({"", "lm_head.weight"}, table);
  int T = options.max_tokens;
  m->stream_ = Stream::scratch(w, T, c.dim);
  m->attn_ = Attention::scratch(w, T, c.q_dim(), c.kv_dim());
  m->ffn_ = Mlp::scratch(w, T, c.ffn);
  VT_RETURN_IF_ERROR(m->adopt(w));
  return std::unique_ptr<Model>(std::move(m));
}

void Opt::forward(Ops& ops, const ModelInput& in, Tensor hidden) {
  auto [x, h, d] = stream_.rows(in.tokens());  // (T,E)
  ops.embed(x, *embed_, in.ids);
  ops.embed(d, *positions_, in.positions);
  ops.add(x, x, d);
  for (int i = 0; i < c_.layers; ++i) {
    const Layer& l = layers_[i];
    if (c_.norm_first) l.attn_norm.layer(ops, h, x);
    l.attn(ops, in, i, d, c_.norm_first ? h : x, {}, attn_);
    ops.add(x, x, d);
    if (c_.norm_first)
      l.ffn_norm.layer(ops, h, x);
    else
      l.attn_norm.layer(ops, x, x);
    l.ffn(ops, d, c_.norm_first ? h : x, ffn_);
    ops.add(x, x, d);
    if (!c_.norm_first) l.ffn_norm.layer(ops, x, x);
  }
  ops.gather_rows(hidden, x, in.out_rows);
  if (norm_.defined()) norm_.layer(ops, hidden, hidden);
}

}  // namespace

extern const Arch kArch_opt;
const Arch kArch_opt{"opt", {}, {"OPTForCausalLM"}, Opt::load};

}  // namespace vitrine
