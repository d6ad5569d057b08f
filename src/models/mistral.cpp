// Mistral, from HF folders; its GGUF files call themselves llama. HF: modeling_mistral.py.
// Llama with a sliding window in every layer.
#include <cmath>

#include "models/model.h"
#include "nn/layer_loader.h"
#include "nn/rope.h"

namespace vitrine {
namespace {

struct Config : DecoderConfig {
  RopeConfig rope = {};
  int window = 0;
  Activation activation = Activation::kSilu;
};

const Name kEmbedding{"", "model.embed_tokens.weight"};

Result<Config> read_config(const ModelFile& file) {
  ConfigReader r(file);
  Config c{read_decoder_config(r, kEmbedding)};
  c.rope = read_rope(r, c.head_dim, c.context);
  c.window = r.nullable_integer_or({"", "sliding_window"}, 1, 1 << 28, 4096);
  c.activation = read_activation(r, "hidden_act", Activation::kSilu);
  VT_RETURN_IF_ERROR(r.status());
  return c;
}

struct Layer {
  Norm attn_norm, ffn_norm;
  Attention attn;
  GatedFfn ffn;
};

Layer bind_layer(WeightLoader& w, const Config& c, int i) {
  LayerLoader l{w, c, i};
  AttentionParams params{.scale = 1 / std::sqrt(static_cast<float>(c.head_dim)),
                         .window = c.window};
  return {.attn_norm = l.norm("attn_norm", "input_layernorm"),
          .ffn_norm = l.norm("ffn_norm", "post_attention_layernorm"),
          .attn = l.attention(params),
          .ffn = l.gated_ffn(c.activation)};
}

class Mistral final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(const ModelFile& file, Device& device,
                                             const ModelOptions& options);
  CacheSpec cache_spec(int) const override { return {c_.kv_heads, c_.head_dim, c_.window}; }
  void forward(Ops& ops, const ModelInput& in, Tensor hidden) override;
  void head(Ops& ops, Tensor logits, Tensor hidden) override { head_(ops, logits, hidden); }

 private:
  explicit Mistral(Config c) : Model(model_info("mistral", c)), c_(std::move(c)) {}

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

Result<std::unique_ptr<Model>> Mistral::load(const ModelFile& file, Device& device,
                                             const ModelOptions& options) {
  VT_TRY(Config c, read_config(file));
  std::unique_ptr<Mistral> m(new Mistral(c));
  WeightLoader w(file, device, options.progress);
  MatrixSource table = w.matrix(kEmbedding, c.vocab, c.dim);
  m->embed_ = w.table(table);
  for (int i = 0; i < c.layers; ++i) m->layers_.push_back(bind_layer(w, c, i));
  m->norm_ = w.norm({"", "model.norm.weight"}, c.dim, c.eps);
  m->head_ = w.head({"", "lm_head.weight"}, table);
  int T = options.max_tokens;
  m->rope_ = Rope(w, c.rope, options.context, T);
  m->stream_ = Stream::scratch(w, T, c.dim);
  m->attn_ = Attention::scratch(w, T, c.q_dim(), c.kv_dim());
  m->ffn_ = GatedFfn::scratch(w, T, c.ffn);
  VT_RETURN_IF_ERROR(m->adopt(w));
  return std::unique_ptr<Model>(std::move(m));
}

void Mistral::forward(Ops& ops, const ModelInput& in, Tensor hidden) {
  Stream stream = stream_.rows(in.tokens());  // (T,E) each
  ops.embed(stream.x, *embed_, in.ids);
  Tensor rope = rope_(ops, in.positions);
  for (int i = 0; i < c_.layers; ++i) {
    const Layer& l = layers_[i];
    l.attn.residual(ops, in, i, stream, l.attn_norm, rope, attn_);
    l.ffn.residual(ops, stream, l.ffn_norm, ffn_);
  }
  norm_.rms(ops, hidden, stream.x, in.out_rows);
}

}  // namespace

extern const Arch kArch_mistral;
const Arch kArch_mistral{"mistral", {}, {"MistralForCausalLM"}, Mistral::load};

}  // namespace vitrine
