// OLMo 2. HF: modeling_olmo2.py.
// Post-norm: attention and SwiGLU read the residual as it is, their outputs are RMS normed before
// they are added. RMS norms of the whole of q and of k, all heads together.
#include <cmath>

#include "models/model.h"
#include "nn/layer_loader.h"
#include "nn/rope.h"

namespace vitrine {
namespace {

struct Config : DecoderConfig {
  RopeConfig rope = {};
  Activation activation = Activation::kSilu;
};

const Name kEmbedding{"token_embd.weight", "model.embed_tokens.weight"};

Result<Config> read_config(const ModelFile& file) {
  ConfigReader r(file);
  Config c{read_decoder_config(r, kEmbedding)};
  c.rope = read_rope(r, c.head_dim, c.context);
  // OLMo 3 calls itself olmo2 in GGUF files.
  r.none({"attention.sliding_window", "sliding_window"}, "sliding windows are");
  c.activation = read_activation(r, "hidden_act", Activation::kSilu);
  VT_RETURN_IF_ERROR(r.status());
  return c;
}

struct Layer {
  Norm post_attn_norm, post_ffn_norm;
  Attention attn;
  GatedFfn ffn;
};

Layer bind_layer(WeightLoader& w, const Config& c, int i) {
  LayerLoader l{w, c, i};
  AttentionParams params{.scale = 1 / std::sqrt(static_cast<float>(c.head_dim))};
  Layer layer{.post_attn_norm = l.norm("post_attention_norm", "post_attention_layernorm"),
              .post_ffn_norm = l.norm("post_ffw_norm", "post_feedforward_layernorm"),
              .attn = l.attention(params),
              .ffn = l.gated_ffn(c.activation)};
  layer.attn.q_norm = l.norm("attn_q_norm", "self_attn.q_norm", c.q_dim());
  layer.attn.k_norm = l.norm("attn_k_norm", "self_attn.k_norm", c.kv_dim());
  return layer;
}

class Olmo2 final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(const ModelFile& file, Device& device,
                                             const ModelOptions& options);
  CacheSpec cache_spec(int) const override { return {c_.kv_heads, c_.head_dim}; }
  void forward(Ops& ops, const ModelInput& in, Tensor hidden) override;
  void head(Ops& ops, Tensor logits, Tensor hidden) override { head_(ops, logits, hidden); }

 private:
  explicit Olmo2(Config c) : Model(model_info("olmo2", c)), c_(std::move(c)) {}

  Config c_;
  std::shared_ptr<Weight> embed_;  // (V,E)
  std::vector<Layer> layers_;
  Norm norm_;
  Linear head_;  // (V,E)
  Rope rope_;
  Stream stream_;
  Attention::Scratch attn_;
  GatedFfn::Scratch ffn_;
};

Result<std::unique_ptr<Model>> Olmo2::load(const ModelFile& file, Device& device,
                                           const ModelOptions& options) {
  VT_TRY(Config c, read_config(file));
  std::unique_ptr<Olmo2> m(new Olmo2(c));
  WeightLoader w(file, device, options.progress);
  MatrixSource table = w.matrix(kEmbedding, c.vocab, c.dim);
  m->embed_ = w.table(table);
  for (int i = 0; i < c.layers; ++i) m->layers_.push_back(bind_layer(w, c, i));
  m->norm_ = w.norm({"output_norm.weight", "model.norm.weight"}, c.dim, c.eps);
  m->head_ = w.head({"output.weight", "lm_head.weight"}, table);
  int T = options.max_tokens;
  m->rope_ = Rope(w, c.rope, options.context, T);
  m->stream_ = Stream::scratch(w, T, c.dim);
  m->attn_ = Attention::scratch(w, T, c.q_dim(), c.kv_dim());
  m->ffn_ = GatedFfn::scratch(w, T, c.ffn);
  VT_RETURN_IF_ERROR(m->adopt(w));
  return std::unique_ptr<Model>(std::move(m));
}

void Olmo2::forward(Ops& ops, const ModelInput& in, Tensor hidden) {
  auto [x, h, d] = stream_.rows(in.tokens());  // (T,E)
  ops.embed(x, *embed_, in.ids);
  Tensor rope = rope_(ops, in.positions);
  for (int i = 0; i < c_.layers; ++i) {
    const Layer& l = layers_[i];
    l.attn(ops, in, i, d, x, rope, attn_);
    l.post_attn_norm.rms(ops, h, d);
    ops.add(x, x, h);
    l.ffn(ops, d, x, ffn_);
    l.post_ffn_norm.rms(ops, h, d);
    ops.add(x, x, h);
  }
  norm_.rms(ops, hidden, x, in.out_rows);
}

}  // namespace

extern const Arch kArch_olmo2;
const Arch kArch_olmo2{"olmo2", {"olmo2"}, {"Olmo2ForCausalLM"}, Olmo2::load};

}  // namespace vitrine
