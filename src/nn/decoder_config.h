// The numbers that nearly every decoder has, under the names that most of them use.
#pragma once

#include <string>

#include "kernels/backend.h"
#include "nn/config_reader.h"
#include "nn/weight_loader.h"

namespace vitrine {

struct DecoderConfig {
  int layers = 0, dim = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, context = 0;
  float eps = 1e-5f;
  int q_dim() const { return heads * head_dim; }
  int kv_dim() const { return kv_heads * head_dim; }
};

// `eps`: key of the norm's epsilon. The vocabulary is the number of rows of `embedding`.
DecoderConfig read_decoder_config(ConfigReader& c, Key eps, const Name& embedding);

// Rows of the embedding matrix.
int read_vocab(ConfigReader& c, const Name& embedding);
// Width of a head: `key` where the file has it, otherwise dim / heads, which must then be whole.
int read_head_dim(ConfigReader& c, const DecoderConfig& d);
// An activation by its HF name; GGUF files do not say, there it is `missing`.
Activation read_activation(ConfigReader& c, std::string_view hf_key, Activation missing);

// "blk.3.attn_q.weight" and "model.layers.3.self_attn.q_proj.weight".
Name layer_name(int layer, std::string_view gguf, std::string_view hf,
                std::string_view hf_prefix = "model.layers");

}  // namespace vitrine
