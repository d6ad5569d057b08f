// Llama 1 to 3 (and the GGUF files of Mistral, which call themselves llama). HF: modeling_llama.py.
// Pre-norm RMS, grouped-query attention with rotary positions, SwiGLU.
#include <cmath>

#include "models/model.h"
#include "nn/decoder_config.h"
#include "nn/rope.h"

namespace vitrine {
namespace {

struct Layer {
  Norm attn_norm, ffn_norm;
  Attention attn;
  GatedFfn ffn;
};

class Llama final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(const ModelFile& file, Backend& backend,
                                             const ModelOptions& options);
  CacheSpec cache_spec(int) const override { return {c_.kv_heads, c_.head_dim, window_}; }
  void forward(const ModelInput& in, Tensor hidden) override;
  void head(Tensor logits, Tensor hidden) override { head_(b_, logits, hidden); }

 private:
  Llama(ModelInfo info, Backend& b) : Model(std::move(info), b) {}
  Layer bind_layer(WeightLoader& w, int i) const;

  DecoderConfig c_;
  int window_ = 0;
  std::shared_ptr<Weight> embed_;  // (V,E)
  std::vector<Layer> layers_;
  Norm norm_;
  Linear head_;  // (V,E)
  Rope rope_;
  Tensor x_, h_, d_;  // (max T, E): residual, normed, delta
  Attention::Scratch attn_;
  GatedFfn::Scratch ffn_;
};

Layer Llama::bind_layer(WeightLoader& w, int i) const {
  auto name = [&](const char* gguf, const char* hf) { return layer_name(i, gguf, hf); };
  // Rotary pairs are neighbours in GGUF files of this architecture.
  auto rotary = [&](const char* part, const char* hf, int heads) {
    std::string g = part, h = hf;
    Name bias = layer_name(i, g + ".bias", h + ".bias");
    MatrixSource m = w.matrix(layer_name(i, g + ".weight", h + ".weight"), heads * c_.head_dim, c_.dim);
    std::vector<float> b = w.has(bias) ? w.floats(bias, heads * c_.head_dim) : std::vector<float>{};
    if (w.gguf()) {
      m = WeightLoader::unpermute_rotary(m, heads, c_.head_dim);
      WeightLoader::unpermute_rotary(b, heads, c_.head_dim);
    }
    return w.linear(m, std::move(b));
  };
  Layer l;
  l.attn_norm = w.norm(name("attn_norm.weight", "input_layernorm.weight"), c_.dim, c_.eps);
  l.ffn_norm = w.norm(name("ffn_norm.weight", "post_attention_layernorm.weight"), c_.dim, c_.eps);
  l.attn = {.heads = c_.heads, .kv_heads = c_.kv_heads, .head_dim = c_.head_dim};
  l.attn.params = {.scale = 1 / std::sqrt(static_cast<float>(c_.head_dim)), .window = window_};
  l.attn.q = rotary("attn_q", "self_attn.q_proj", c_.heads);
  l.attn.k = rotary("attn_k", "self_attn.k_proj", c_.kv_heads);
  l.attn.v = w.linear(name("attn_v.weight", "self_attn.v_proj.weight"), c_.kv_dim(), c_.dim,
                      name("attn_v.bias", "self_attn.v_proj.bias"));
  l.attn.o = w.linear(name("attn_output.weight", "self_attn.o_proj.weight"), c_.dim, c_.q_dim(),
                      name("attn_output.bias", "self_attn.o_proj.bias"));
  l.ffn.gate = w.linear(name("ffn_gate.weight", "mlp.gate_proj.weight"), c_.ffn, c_.dim,
                        name("ffn_gate.bias", "mlp.gate_proj.bias"));
  l.ffn.up = w.linear(name("ffn_up.weight", "mlp.up_proj.weight"), c_.ffn, c_.dim,
                      name("ffn_up.bias", "mlp.up_proj.bias"));
  l.ffn.down = w.linear(name("ffn_down.weight", "mlp.down_proj.weight"), c_.dim, c_.ffn,
                        name("ffn_down.bias", "mlp.down_proj.bias"));
  return l;
}

Result<std::unique_ptr<Model>> Llama::load(const ModelFile& file, Backend& backend,
                                           const ModelOptions& options) {
  ConfigReader c(file);
  Name embed{"token_embd.weight", "model.embed_tokens.weight"};
  DecoderConfig d =
      read_decoder_config(c, {"attention.layer_norm_rms_epsilon", "rms_norm_eps"}, embed);
  RopeConfig rope = read_rope(c, d.head_dim, d.context);
  int window = c.integer_or({"attention.sliding_window", ""}, 0, 1 << 28, 0);
  VT_RETURN_IF_ERROR(c.status());

  auto m = std::unique_ptr<Llama>(
      new Llama({"llama", d.layers, d.dim, d.heads, d.vocab, d.context}, backend));
  m->c_ = d;
  m->window_ = window;
  WeightLoader w(file, backend, options.progress);
  MatrixSource table = w.matrix(embed, d.vocab, d.dim);
  m->embed_ = w.table(table);
  for (int i = 0; i < d.layers; ++i) m->layers_.push_back(m->bind_layer(w, i));
  m->norm_ = w.norm({"output_norm.weight", "model.norm.weight"}, d.dim, d.eps);
  Name output{"output.weight", "lm_head.weight"};
  m->head_ = w.head(w.has(output) ? w.matrix(output, d.vocab, d.dim) : table);
  std::vector<float> divisors;
  if (w.has({"rope_freqs.weight", ""})) divisors = w.floats({"rope_freqs.weight", ""}, rope.dims / 2);
  int T = options.max_tokens;
  m->rope_ = Rope(w, rope, options.context, T, divisors);
  m->x_ = w.activations({T, d.dim});
  m->h_ = w.activations({T, d.dim});
  m->d_ = w.activations({T, d.dim});
  m->attn_ = Attention::scratch(w, T, d.q_dim(), d.kv_dim());
  m->ffn_ = GatedFfn::scratch(w, T, d.ffn);
  VT_RETURN_IF_ERROR(m->adopt(w));
  return std::unique_ptr<Model>(std::move(m));
}

void Llama::forward(const ModelInput& in, Tensor hidden) {
  std::int64_t T = in.tokens();
  Tensor x = x_.rows(T), h = h_.rows(T), d = d_.rows(T);  // (T,E)
  b_.embed(x, *embed_, in.ids);
  Tensor rope = rope_(b_, in.positions);
  for (int i = 0; i < c_.layers; ++i) {
    const Layer& l = layers_[i];
    l.attn_norm.rms(b_, h, x);
    l.attn(b_, in, i, d, h, rope, attn_);
    b_.add_rms_norm(h, x, d, l.ffn_norm.w, l.ffn_norm.eps);
    l.ffn(b_, d, h, ffn_);
    b_.add(x, x, d);
  }
  b_.gather_rows(hidden, x, in.out_rows);
  norm_.rms(b_, hidden, hidden);
}

}  // namespace

extern const Arch kArch_llama;
const Arch kArch_llama{"llama", {"llama"}, {"LlamaForCausalLM"}, Llama::load};

}  // namespace vitrine
