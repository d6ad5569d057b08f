#include "nn/decoder_config.h"

namespace vitrine {

int read_vocab(ConfigReader& c, const Name& embedding) {
  const TensorInfo* info = c.file().find(c.gguf() ? embedding.gguf : embedding.hf);
  if (info == nullptr && !c.gguf()) info = c.file().find("language_model." + embedding.hf);
  if (info != nullptr && info->shape.rank() == 2 && info->shape[0] >= 1 && info->shape[0] < (1 << 24))
    return static_cast<int>(info->shape[0]);
  c.fail(make_error(ErrorCode::kNotFound, "{}: no embedding matrix '{}' of two dimensions",
                    c.file().path(), c.gguf() ? embedding.gguf : embedding.hf));
  return 1;
}

int read_head_dim(ConfigReader& c, const DecoderConfig& d) {
  if (c.has({"attention.key_length", "head_dim"}))
    return c.integer({"attention.key_length", "head_dim"}, 1, 1024);
  if (d.dim % d.heads != 0)
    c.fail(make_error(ErrorCode::kMalformed, "{}: {} dimensions do not divide into {} heads",
                      c.file().path(), d.dim, d.heads));
  return d.dim / d.heads;
}

DecoderConfig read_decoder_config(ConfigReader& c, Key eps, const Name& embedding) {
  DecoderConfig d;
  d.layers = c.integer({"block_count", "num_hidden_layers"}, 1, 1024);
  d.dim = c.integer({"embedding_length", "hidden_size"}, 1, 1 << 18);
  d.heads = c.integer({"attention.head_count", "num_attention_heads"}, 1, 1024);
  d.kv_heads = c.integer_or({"attention.head_count_kv", "num_key_value_heads"}, 1, 1024, d.heads);
  d.ffn = c.integer({"feed_forward_length", "intermediate_size"}, 1, 1 << 20);
  d.context = c.integer({"context_length", "max_position_embeddings"}, 1, 1 << 28);
  d.eps = c.number(eps, 0, 1);
  d.vocab = read_vocab(c, embedding);
  d.head_dim = read_head_dim(c, d);
  if (d.head_dim > 1024 || d.heads % d.kv_heads != 0)
    c.fail(make_error(ErrorCode::kMalformed,
                      "{}: {} heads over {} kv heads of width {}; heads must be a multiple and the "
                      "width at most 1024",
                      c.file().path(), d.heads, d.kv_heads, d.head_dim));
  return d;
}

Activation read_activation(ConfigReader& c, std::string_view hf_key, Activation missing) {
  std::string name = c.string_or({"", hf_key}, "");
  if (name.empty()) return missing;
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "gelu") return Activation::kGelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast")
    return Activation::kGeluTanh;
  if (name == "relu") return Activation::kRelu;
  c.fail(make_error(ErrorCode::kUnsupported,
                    "{}: found '{}', known are silu, gelu, gelu_new, gelu_pytorch_tanh, relu", hf_key,
                    name));
  return missing;
}

Name layer_name(int layer, std::string_view gguf, std::string_view hf, std::string_view hf_prefix) {
  Name name;
  if (!gguf.empty()) name.gguf = fmt::format("blk.{}.{}", layer, gguf);
  if (!hf.empty()) name.hf = fmt::format("{}.{}.{}", hf_prefix, layer, hf);
  return name;
}

}  // namespace vitrine
