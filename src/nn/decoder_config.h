// What nearly every decoder has, and how files spell it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "nn/config_reader.h"
#include "nn/layers.h"
#include "nn/rope.h"
#include "nn/weight_loader.h"

namespace vitrine {

// Tensors outside the layers, by the names that most architectures use; the others replace theirs.
struct DecoderNames {
  Name embedding{"token_embd.weight", "model.embed_tokens.weight"};
  Name norm{"output_norm", "model.norm"};  // stem: ".weight" and ".bias" are added
  Name head{"output.weight", "lm_head.weight"};
  std::string hf_layers = "model.layers";  // GGUF: always "blk"
};

struct DecoderConfig {
  int layers = 0, dim = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, context = 0;
  float eps = 1e-5f;
  DecoderNames names = {};
  float embed_scale = 1;
  RopeConfig rope = {};                          // no dims: none
  std::optional<RopeConfig> local_rope = {};     // of layers with a window, where it is another
  std::vector<int> windows = {};                 // by layer, 0: full attention; empty: all full
  float attention_scale = 1, attention_cap = 0;  // AttentionParams
  Activation activation = Activation::kSilu;
  NormKind norm = NormKind::kRms;
  float norm_offset = 0;  // added to the weights of norms
  bool final_norm = true;
  float final_cap = 0;          // > 0: soft cap of the logits
  bool adjacent_pairs = false;  // the file's rotary pairs of q and k are rows (2i, 2i+1)

  int q_dim() const { return heads * head_dim; }
  int kv_dim() const { return kv_heads * head_dim; }
  int window(int layer) const { return windows.empty() ? 0 : windows[layer]; }
};

// Settings, by the keys that most architectures use; the others replace theirs.
struct DecoderKeys {
  Key layers{"block_count", "num_hidden_layers"};
  Key dim{"embedding_length", "hidden_size"};
  Key heads{"attention.head_count", "num_attention_heads"};
  Key kv_heads{"attention.head_count_kv", "num_key_value_heads"};
  Key head_dim{"attention.key_length", "head_dim"};
  Key ffn{"feed_forward_length", "intermediate_size"};
  int ffn_missing = 0;  // > 0: times dim, for files without the key
  Key context{"context_length", "max_position_embeddings"};
  Key eps{"attention.layer_norm_rms_epsilon", "rms_norm_eps"};  // both empty: always 1e-5
  // What HF's class says about keys that config.json leaves out; 0: they must be there.
  DecoderConfig hf_missing{.eps = 0};
};

// The numbers, the names and the usual attention scale; the rest is the architecture's. The
// vocabulary is the number of rows of the embedding. Refuses what no architecture here computes:
// experts, weights in a quantisation of their own, values of another width than keys.
DecoderConfig read_decoder_config(ConfigReader& c, const DecoderKeys& keys = {},
                                  const DecoderNames& names = {});

// An activation by its HF name; GGUF files do not say, there it is `missing`.
Activation read_activation(ConfigReader& c, std::string_view hf_key, Activation missing);

// Window of each layer, 0 for full attention: `window` where the layer is a sliding one. The file
// says which are: a list (HF layer_types, GGUF flags) or a period n (all but every n-th layer);
// otherwise `sliding` does.
std::vector<int> read_windows(ConfigReader& c, int layers, int window,
                              const std::function<bool(int layer)>& sliding);

}  // namespace vitrine
