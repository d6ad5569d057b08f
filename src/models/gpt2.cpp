// GPT-2. HF: modeling_gpt2.py, whose Conv1D matrices are stored transposed.
// Pre-norm LayerNorm, learned positions, multi-head attention with q, k, v in one matrix, GELU.
#include <cmath>

#include "models/model.h"
#include "nn/layer_loader.h"

namespace vitrine {
namespace {

struct Config : DecoderConfig {
  float attention_scale = 1;
  Activation activation = Activation::kGeluTanh;
};

const Name kEmbedding{"token_embd.weight", "transformer.wte.weight"};

Result<Config> read_config(const ModelFile& file) {
  ConfigReader r(file);
  Key context{"context_length", "n_positions"};
  if (!r.has(context)) context.hf = "n_ctx";
  Config c{read_decoder_config(r, kEmbedding,
                               {.layers = {"block_count", "n_layer"},
                                .dim = {"embedding_length", "n_embd"},
                                .heads = {"attention.head_count", "n_head"},
                                .kv_heads = {},
                                .head_dim = {},
                                .ffn = {"feed_forward_length", "n_inner"},
                                .ffn_missing = 4,
                                .context = context,
                                .eps = {"attention.layer_norm_epsilon", "layer_norm_epsilon"}})};
  if (r.boolean_or({"", "scale_attn_weights"}, true))
    c.attention_scale = 1 / std::sqrt(static_cast<float>(c.head_dim));
  r.only({"", "scale_attn_by_inverse_layer_idx"}, false);
  r.only({"", "add_cross_attention"}, false);
  c.activation = read_activation(r, "activation_function", Activation::kGeluTanh);
  VT_RETURN_IF_ERROR(r.status());
  return c;
}

struct Layer {
  Norm attn_norm, ffn_norm;
  Attention attn;
  Mlp ffn;
};

Layer bind_layer(WeightLoader& w, const Config& c, int i) {
  LayerLoader l{w, c, i, "transformer.h"};
  bool t = !w.gguf();
  MatrixSource qkv = w.matrix(l.weight("attn_qkv", "attn.c_attn"), 3 * c.dim, c.dim, t);
  std::vector<float> bias = w.floats_if_any(l.bias("attn_qkv", "attn.c_attn"), 3 * c.dim);
  return {.attn_norm = l.norm("attn_norm", "ln_1"),
          .ffn_norm = l.norm("ffn_norm", "ln_2"),
          .attn = l.attention({.scale = c.attention_scale}, qkv, bias,
                              l.linear("attn_output", "attn.c_proj", c.dim, c.dim, t)),
          .ffn = {.activation = c.activation,
                  .up = l.linear("ffn_up", "mlp.c_fc", c.ffn, c.dim, t),
                  .down = l.linear("ffn_down", "mlp.c_proj", c.dim, c.ffn, t)}};
}

class Gpt2 final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(const ModelFile& file, Device& device,
                                             const ModelOptions& options);
  CacheSpec cache_spec(int) const override { return {c_.kv_heads, c_.head_dim}; }
  void forward(Ops& ops, const ModelInput& in, Tensor hidden) override;
  void head(Ops& ops, Tensor logits, Tensor hidden) override { head_(ops, logits, hidden); }

 private:
  explicit Gpt2(Config c) : Model(model_info("gpt2", c)), c_(std::move(c)) {}

  Config c_;
  std::shared_ptr<Weight> embed_, positions_;  // (V,E), (context,E)
  std::vector<Layer> layers_;
  Norm norm_;
  Linear head_;  // (V,E)
  Stream stream_;
  Attention::Scratch attn_;
  Mlp::Scratch ffn_;
};

Result<std::unique_ptr<Model>> Gpt2::load(const ModelFile& file, Device& device,
                                          const ModelOptions& options) {
  VT_TRY(Config c, read_config(file));
  std::unique_ptr<Gpt2> m(new Gpt2(c));
  WeightLoader w(file, device, options.progress);
  MatrixSource table = w.matrix(kEmbedding, c.vocab, c.dim);
  m->embed_ = w.table(table);
  m->positions_ =
      w.table(w.matrix({"position_embd.weight", "transformer.wpe.weight"}, c.context, c.dim));
  for (int i = 0; i < c.layers; ++i) m->layers_.push_back(bind_layer(w, c, i));
  m->norm_ = w.norm({"output_norm.weight", "transformer.ln_f.weight"}, c.dim, c.eps,
                    {"output_norm.bias", "transformer.ln_f.bias"});
  m->head_ = w.head({"output.weight", "lm_head.weight"}, table);
  int T = options.max_tokens;
  m->stream_ = Stream::scratch(w, T, c.dim);
  m->attn_ = Attention::scratch(w, T, c.q_dim(), c.kv_dim());
  m->ffn_ = Mlp::scratch(w, T, c.ffn);
  VT_RETURN_IF_ERROR(m->adopt(w));
  return std::unique_ptr<Model>(std::move(m));
}

void Gpt2::forward(Ops& ops, const ModelInput& in, Tensor hidden) {
  auto [x, h, d] = stream_.rows(in.tokens());  // (T,E)
  ops.embed(x, *embed_, in.ids);
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

extern const Arch kArch_gpt2;
const Arch kArch_gpt2{"gpt2", {"gpt2"}, {"GPT2LMHeadModel"}, Gpt2::load};

}  // namespace vitrine
