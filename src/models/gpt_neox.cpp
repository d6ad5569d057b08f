// GPT-NeoX and Pythia. HF: modeling_gpt_neox.py.
// LayerNorm, rotary positions on a part of each head, GELU; attention and MLP both read the same
// residual (parallel) or one after the other.
#include <cmath>

#include "models/model.h"
#include "nn/layer_loader.h"
#include "nn/rope.h"

namespace vitrine {
namespace {

struct Config : DecoderConfig {
  RopeConfig rope = {};
  bool parallel = true;
  Activation activation = Activation::kGelu;
};

const Name kEmbedding{"token_embd.weight", "gpt_neox.embed_in.weight"};

Result<Config> read_config(const ModelFile& file) {
  ConfigReader r(file);
  Config c{read_decoder_config(
      r, kEmbedding,
      {.kv_heads = {}, .head_dim = {}, .eps = {"attention.layer_norm_epsilon", "layer_norm_eps"}})};
  c.rope = read_rope(r, c.head_dim, c.context);
  c.parallel = r.boolean_or({"use_parallel_residual", "use_parallel_residual"}, true);
  c.activation = read_activation(r, "hidden_act", Activation::kGelu);
  VT_RETURN_IF_ERROR(r.status());
  return c;
}

struct Layer {
  Norm attn_norm, ffn_norm;
  Attention attn;
  Mlp ffn;
};

// HF keeps q, k, v of each head together, GGUF those of all heads: (head, 3, D) to (3, head, D).
template <typename T>
std::vector<T> unmix(const std::vector<T>& rows, const Config& c) {
  std::vector<T> out(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::size_t at = i % c.head_dim, part = i / c.head_dim % 3, head = i / c.head_dim / 3;
    out[(part * c.heads + head) * c.head_dim + at] = rows[i];
  }
  return out;
}

Layer bind_layer(WeightLoader& w, const Config& c, int i) {
  LayerLoader l{w, c, i, "gpt_neox.layers"};
  MatrixSource qkv = w.matrix(l.weight("attn_qkv", "attention.query_key_value"), 3 * c.dim, c.dim);
  std::vector<float> bias =
      w.floats_if_any(l.bias("attn_qkv", "attention.query_key_value"), 3 * c.dim);
  if (!w.gguf()) {
    qkv.row_data = unmix(qkv.row_data, c);
    bias = unmix(bias, c);
  }
  AttentionParams params{.scale = 1 / std::sqrt(static_cast<float>(c.head_dim))};
  return {.attn_norm = l.norm("attn_norm", "input_layernorm"),
          .ffn_norm = l.norm("ffn_norm", "post_attention_layernorm"),
          .attn = l.attention(params, qkv, bias,
                              l.linear("attn_output", "attention.dense", c.dim, c.dim)),
          .ffn = {.activation = c.activation,
                  .up = l.linear("ffn_up", "mlp.dense_h_to_4h", c.ffn, c.dim),
                  .down = l.linear("ffn_down", "mlp.dense_4h_to_h", c.dim, c.ffn)}};
}

class GptNeox final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(const ModelFile& file, Device& device,
                                             const ModelOptions& options);
  CacheSpec cache_spec(int) const override { return {c_.kv_heads, c_.head_dim}; }
  void forward(Ops& ops, const ModelInput& in, Tensor hidden) override;
  void head(Ops& ops, Tensor logits, Tensor hidden) override { head_(ops, logits, hidden); }

 private:
  explicit GptNeox(Config c) : Model(model_info("gpt_neox", c)), c_(std::move(c)) {}

  Config c_;
  std::shared_ptr<Weight> embed_;  // (V,E)
  std::vector<Layer> layers_;
  Norm norm_;
  Linear head_;  // (V,E)
  Rope rope_;
  Stream stream_;
  Attention::Scratch attn_;
  Mlp::Scratch ffn_;
};

Result<std::unique_ptr<Model>> GptNeox::load(const ModelFile& file, Device& device,
                                             const ModelOptions& options) {
  VT_TRY(Config c, read_config(file));
  std::unique_ptr<GptNeox> m(new GptNeox(c));
  WeightLoader w(file, device, options.progress);
  MatrixSource table = w.matrix(kEmbedding, c.vocab, c.dim);
  m->embed_ = w.table(table);
  for (int i = 0; i < c.layers; ++i) m->layers_.push_back(bind_layer(w, c, i));
  m->norm_ = w.norm({"output_norm.weight", "gpt_neox.final_layer_norm.weight"}, c.dim, c.eps,
                    {"output_norm.bias", "gpt_neox.final_layer_norm.bias"});
  m->head_ = w.head({"output.weight", "embed_out.weight"}, table);
  int T = options.max_tokens;
  m->rope_ = Rope(w, c.rope, options.context, T);
  m->stream_ = Stream::scratch(w, T, c.dim);
  m->attn_ = Attention::scratch(w, T, c.q_dim(), c.kv_dim());
  m->ffn_ = Mlp::scratch(w, T, c.ffn);
  VT_RETURN_IF_ERROR(m->adopt(w));
  return std::unique_ptr<Model>(std::move(m));
}

void GptNeox::forward(Ops& ops, const ModelInput& in, Tensor hidden) {
  auto [x, h, d] = stream_.rows(in.tokens());  // (T,E)
  ops.embed(x, *embed_, in.ids);
  Tensor rope = rope_(ops, in.positions);
  for (int i = 0; i < c_.layers; ++i) {
    const Layer& l = layers_[i];
    l.attn_norm.layer(ops, h, x);
    l.attn(ops, in, i, d, h, rope, attn_);
    if (c_.parallel) l.ffn_norm.layer(ops, h, x);
    ops.add(x, x, d);
    if (!c_.parallel) l.ffn_norm.layer(ops, h, x);
    l.ffn(ops, d, h, ffn_);
    ops.add(x, x, d);
  }
  ops.gather_rows(hidden, x, in.out_rows);
  norm_.layer(ops, hidden, hidden);
}

}  // namespace

extern const Arch kArch_gpt_neox;
const Arch kArch_gpt_neox{"gpt_neox", {"gptneox"}, {"GPTNeoXForCausalLM"}, GptNeox::load};

}  // namespace vitrine
