// Llama 1 to 3 (and the GGUF files of Mistral, which call themselves llama). HF: modeling_llama.py.
// Pre-norm RMS, grouped-query attention with rotary positions, SwiGLU.
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

const Name kEmbedding{"token_embd.weight", "model.embed_tokens.weight"};

Result<Config> read_config(const ModelFile& file) {
  ConfigReader r(file);
  Config c{read_decoder_config(r, kEmbedding)};
  c.rope = read_rope(r, c.head_dim, c.context);
  c.window = r.integer_or({"attention.sliding_window", ""}, 0, 1 << 28, 0);
  c.activation = read_activation(r, "hidden_act", Activation::kSilu);
  // A GGUF file's pairs are neighbours over the whole head; undoing that needs all of it rotated.
  if (r.gguf() && c.rope.dims != c.head_dim)
    r.fail(make_error(ErrorCode::kUnsupported,
                      "llama.rope.dimension_count: found {}, only the head's width, {}, is known",
                      c.rope.dims, c.head_dim));
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
  l.adjacent_pairs = w.gguf();
  AttentionParams params{.scale = 1 / std::sqrt(static_cast<float>(c.head_dim)),
                         .window = c.window};
  return {.attn_norm = l.norm("attn_norm", "input_layernorm"),
          .ffn_norm = l.norm("ffn_norm", "post_attention_layernorm"),
          .attn = l.attention(params),
          .ffn = l.gated_ffn(c.activation)};
}

class Llama final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(const ModelFile& file, Device& device,
                                             const ModelOptions& options);
  CacheSpec cache_spec(int) const override { return {c_.kv_heads, c_.head_dim, c_.window}; }
  void forward(Ops& ops, const ModelInput& in, Tensor hidden) override;
  void head(Ops& ops, Tensor logits, Tensor hidden) override { head_(ops, logits, hidden); }

 private:
  explicit Llama(Config c) : Model(model_info("llama", c)), c_(std::move(c)) {}

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

Result<std::unique_ptr<Model>> Llama::load(const ModelFile& file, Device& device,
                                           const ModelOptions& options) {
  VT_TRY(Config c, read_config(file));
  std::unique_ptr<Llama> m(new Llama(c));
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

void Llama::forward(Ops& ops, const ModelInput& in, Tensor hidden) {
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

extern const Arch kArch_llama;
const Arch kArch_llama{"llama", {"llama"}, {"LlamaForCausalLM"}, Llama::load};

}  // namespace vitrine
