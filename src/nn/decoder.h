// Decoder: the body that decoders share. Embedding, layers, final norm, head.
//
// An architecture is a struct, which is also one of its layers, with
//   static C config(ConfigReader& r);               its configuration; C is a DecoderConfig
//   static A bind(LayerLoader& l, const C& c);      the weights of one layer
//   void forward(Step& s) const;                    one layer, in the order of the paper
//   GatedFfn ffn;  or  Mlp ffn;
// and, where positions are a table that is added to the embedding,
//   static MatrixSource positions(WeightLoader& w, const C& c, int context);
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "nn/decoder_config.h"
#include "nn/layer_loader.h"
#include "nn/model.h"
#include "nn/rope.h"

namespace vitrine {

Norm bind_final_norm(WeightLoader& w, const DecoderConfig& c);
// `gated`: the layers have a GatedFfn.
Activations allocate_activations(WeightLoader& w, const DecoderConfig& c, int max_tokens,
                                 bool gated);

template <typename Architecture>
class Decoder final : public Model {
 public:
  using Config = decltype(Architecture::config(std::declval<ConfigReader&>()));

  // `name`: the architecture's, for ModelInfo.
  static Result<std::unique_ptr<Model>> load(const char* name, const ModelFile& file,
                                             Device& device, const ModelOptions& options) {
    ConfigReader r(file);
    Config c = Architecture::config(r);
    VT_RETURN_IF_ERROR(r.status());
    std::unique_ptr<Decoder> m(new Decoder(name, std::move(c)));
    WeightLoader w(file, device, options.progress);
    m->bind(w, options);
    VT_RETURN_IF_ERROR(m->adopt(w));
    return std::unique_ptr<Model>(std::move(m));
  }

  CacheSpec cache_spec(int layer) const override {
    return {c_.kv_heads, c_.head_dim, c_.window(layer)};
  }

  void forward(Ops& ops, const ModelInput& in, Tensor hidden) override {
    Step s{activations_.rows(in.tokens()), ops, in};
    ops.embed(s.x, *embedding_, in.ids, c_.embed_scale);
    if (positions_) {
      ops.embed(s.d, *positions_, in.positions);
      ops.add(s.x, s.x, s.d);
    }
    Tensor rope = rope_(ops, in.positions), local_rope = local_rope_(ops, in.positions);
    for (; s.layer < c_.layers; ++s.layer) {
      s.rope = c_.local_rope && c_.window(s.layer) > 0 ? local_rope : rope;
      layers_[s.layer].forward(s);
    }
    norm_.of_rows(ops, hidden, s.x, in.out_rows);
  }

  void head(Ops& ops, Tensor logits, Tensor hidden) override {
    head_(ops, logits, hidden);
    if (c_.final_cap > 0) ops.softcap(logits, c_.final_cap);
  }

 private:
  Decoder(const char* name, Config c)
      : Model({name, c.layers, c.dim, c.heads, c.vocab, c.context}), c_(std::move(c)) {}

  void bind(WeightLoader& w, const ModelOptions& options) {
    const int T = options.max_tokens;
    const int context = options.context > 0 ? std::min(options.context, c_.context) : c_.context;
    MatrixSource embedding = w.matrix(c_.names.embedding, c_.vocab, c_.dim);
    embedding_ = w.table(embedding);
    if constexpr (requires { Architecture::positions(w, c_, context); })
      positions_ = w.table(Architecture::positions(w, c_, context));
    for (int i = 0; i < c_.layers; ++i) {
      LayerLoader l{w, c_, i};
      layers_.push_back(Architecture::bind(l, c_));
    }
    if (c_.final_norm) norm_ = bind_final_norm(w, c_);
    head_ = w.head(c_.names.head, embedding);
    if (c_.rope.dims > 0) rope_ = Rope(w, c_.rope, options.context, T);
    if (c_.local_rope) local_rope_ = Rope(w, *c_.local_rope, options.context, T);
    constexpr bool kGated = std::is_same_v<decltype(Architecture::ffn), GatedFfn>;
    activations_ = allocate_activations(w, c_, T, kGated);
  }

  Config c_;
  std::shared_ptr<Weight> embedding_, positions_;  // (V,E), (context,E) or null
  std::vector<Architecture> layers_;
  Norm norm_;
  Linear head_;  // (V,E)
  Rope rope_, local_rope_;
  Activations activations_;
};

}  // namespace vitrine
