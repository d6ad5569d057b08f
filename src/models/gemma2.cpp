// Gemma 2. HF: modeling_gemma2.py.
// RMS norms before and after attention and the gated GELU, each with weights 1 + w (HF stores w,
// GGUF the sum); soft caps on attention scores and logits; every other layer has a sliding window.
#include <cmath>

#include "models/model.h"
#include "nn/layer_loader.h"
#include "nn/rope.h"

namespace vitrine {
namespace {

struct Config : DecoderConfig {
  RopeConfig rope = {};
  std::vector<int> windows = {};  // by layer, 0: full attention
  float attention_scale = 1, attention_cap = 0, final_cap = 0;
  Activation activation = Activation::kGeluTanh;
};

const Name kEmbedding{"token_embd.weight", "model.embed_tokens.weight"};

Result<Config> read_config(const ModelFile& file) {
  ConfigReader r(file);
  Config c{read_decoder_config(r, kEmbedding)};
  c.rope = read_rope(r, c.head_dim, c.context);
  int window =
      r.nullable_integer_or({"attention.sliding_window", "sliding_window"}, 0, 1 << 28, 4096);
  c.windows = read_windows(r, c.layers, window, [](int i) { return i % 2 == 0; });
  c.attention_cap =
      r.nullable_number_or({"attn_logit_softcapping", "attn_logit_softcapping"}, 0, 1e6, 50);
  c.final_cap =
      r.nullable_number_or({"final_logit_softcapping", "final_logit_softcapping"}, 0, 1e6, 30);
  // GGUF files do not say; only the 27B has another width than that of a head.
  float query_width = c.layers == 46 ? c.dim / c.heads : c.head_dim;
  if (!r.gguf()) query_width = r.number_or({"", "query_pre_attn_scalar"}, 1e-3, 1e6, 256);
  c.attention_scale = 1 / std::sqrt(query_width);
  r.only({"", "use_bidirectional_attention"}, false);
  c.activation = read_activation(r, "hidden_activation", Activation::kGeluTanh);
  VT_RETURN_IF_ERROR(r.status());
  return c;
}

struct Layer {
  Norm attn_norm, post_attn_norm, ffn_norm, post_ffn_norm;
  Attention attn;
  GatedFfn ffn;
};

float norm_offset(const WeightLoader& w) { return w.gguf() ? 0 : 1; }

Layer bind_layer(WeightLoader& w, const Config& c, int i) {
  LayerLoader l{w, c, i};
  l.norm_offset = norm_offset(w);
  AttentionParams params{
      .scale = c.attention_scale, .window = c.windows[i], .softcap = c.attention_cap};
  return {.attn_norm = l.norm("attn_norm", "input_layernorm"),
          .post_attn_norm = l.norm("post_attention_norm", "post_attention_layernorm"),
          .ffn_norm = l.norm("ffn_norm", "pre_feedforward_layernorm"),
          .post_ffn_norm = l.norm("post_ffw_norm", "post_feedforward_layernorm"),
          .attn = l.attention(params),
          .ffn = l.gated_ffn(c.activation)};
}

class Gemma2 final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(const ModelFile& file, Device& device,
                                             const ModelOptions& options);
  CacheSpec cache_spec(int layer) const override {
    return {c_.kv_heads, c_.head_dim, c_.windows[layer]};
  }
  void forward(Ops& ops, const ModelInput& in, Tensor hidden) override;
  void head(Ops& ops, Tensor logits, Tensor hidden) override {
    head_(ops, logits, hidden);
    if (c_.final_cap > 0) ops.softcap(logits, c_.final_cap);
  }

 private:
  explicit Gemma2(Config c) : Model(model_info("gemma2", c)), c_(std::move(c)) {}

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

Result<std::unique_ptr<Model>> Gemma2::load(const ModelFile& file, Device& device,
                                            const ModelOptions& options) {
  VT_TRY(Config c, read_config(file));
  std::unique_ptr<Gemma2> m(new Gemma2(c));
  WeightLoader w(file, device, options.progress);
  MatrixSource table = w.matrix(kEmbedding, c.vocab, c.dim);
  m->embed_ = w.table(table);
  for (int i = 0; i < c.layers; ++i) m->layers_.push_back(bind_layer(w, c, i));
  m->norm_ = w.norm({"output_norm.weight", "model.norm.weight"}, c.dim, c.eps, {}, norm_offset(w));
  m->head_ = w.head({"output.weight", "lm_head.weight"}, table);
  int T = options.max_tokens;
  m->rope_ = Rope(w, c.rope, options.context, T);
  m->stream_ = Stream::scratch(w, T, c.dim);
  m->attn_ = Attention::scratch(w, T, c.q_dim(), c.kv_dim());
  m->ffn_ = GatedFfn::scratch(w, T, c.ffn);
  VT_RETURN_IF_ERROR(m->adopt(w));
  return std::unique_ptr<Model>(std::move(m));
}

void Gemma2::forward(Ops& ops, const ModelInput& in, Tensor hidden) {
  auto [x, h, d] = stream_.rows(in.tokens());  // (T,E)
  ops.embed(x, *embed_, in.ids, std::sqrt(static_cast<float>(c_.dim)));
  Tensor rope = rope_(ops, in.positions);
  for (int i = 0; i < c_.layers; ++i) {
    const Layer& l = layers_[i];
    l.attn_norm.rms(ops, h, x);
    l.attn(ops, in, i, d, h, rope, attn_);
    l.post_attn_norm.rms(ops, d, d);
    ops.add_rms_norm(h, x, d, l.ffn_norm.w, l.ffn_norm.eps);
    l.ffn(ops, d, h, ffn_);
    l.post_ffn_norm.rms(ops, d, d);
    ops.add(x, x, d);
  }
  norm_.rms(ops, hidden, x, in.out_rows);
}

}  // namespace

extern const Arch kArch_gemma2;
const Arch kArch_gemma2{"gemma2", {"gemma2"}, {"Gemma2ForCausalLM"}, Gemma2::load};

}  // namespace vitrine
