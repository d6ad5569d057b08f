#include "nn/decoder_config.h"

#include <cmath>

namespace vitrine {
namespace {

int read_vocab(ConfigReader& c, const Name& embedding) {
  const TensorInfo* info = find_tensor(c.file(), embedding);
  if (info != nullptr && info->shape.rank() == 2 && info->shape[0] >= 1 &&
      info->shape[0] < (1 << 24))
    return static_cast<int>(info->shape[0]);
  c.fail(make_error(ErrorCode::kNotFound, "{}: no embedding matrix '{}' of two dimensions",
                    c.file().path(), c.gguf() ? embedding.gguf : embedding.hf));
  return 1;
}

int read_head_dim(ConfigReader& c, const DecoderConfig& d, Key key, int missing) {
  if (c.has(key)) {
    int width = c.integer(key, 1, 1024);
    c.integer_or({"attention.value_length", ""}, width, width, width);
    return width;
  }
  if (missing > 0) return missing;
  if (d.dim % d.heads != 0)
    c.fail(make_error(ErrorCode::kMalformed, "{}: {} dimensions do not divide into {} heads",
                      c.file().path(), d.dim, d.heads));
  return d.dim / d.heads;
}

void refuse_unknown(ConfigReader& c) {
  c.none({"expert_count", "num_local_experts"}, "experts are");
  c.none({"", "num_experts"}, "experts are");
  std::string method = c.string_or({"", "quantization_config.quant_method"}, "");
  if (!method.empty())
    c.fail(make_error(ErrorCode::kUnsupported,
                      "quantization_config.quant_method: found '{}'; quantised weights are read "
                      "from GGUF files only",
                      method));
}

}  // namespace

DecoderConfig read_decoder_config(ConfigReader& c, const DecoderKeys& keys,
                                  const DecoderNames& names) {
  const DecoderConfig missing = c.gguf() ? DecoderConfig{.eps = 0} : keys.hf_missing;
  auto integer = [&](Key key, int max, int otherwise) {
    return otherwise > 0 ? c.integer_or(key, 1, max, otherwise) : c.integer(key, 1, max);
  };
  DecoderConfig d;
  d.layers = integer(keys.layers, 1024, missing.layers);
  d.dim = integer(keys.dim, 1 << 18, missing.dim);
  d.heads = integer(keys.heads, 1024, missing.heads);
  d.kv_heads = integer(keys.kv_heads, 1024, missing.kv_heads > 0 ? missing.kv_heads : d.heads);
  d.ffn = integer(keys.ffn, 1 << 20, keys.ffn_missing > 0 ? keys.ffn_missing * d.dim : missing.ffn);
  d.context = integer(keys.context, 1 << 28, missing.context);
  if (missing.eps > 0)
    d.eps = c.number_or(keys.eps, 0, 1, missing.eps);
  else if (!keys.eps.gguf.empty() || !keys.eps.hf.empty())
    d.eps = c.number(keys.eps, 0, 1);
  d.names = names;
  d.vocab = read_vocab(c, names.embedding);
  d.head_dim = read_head_dim(c, d, keys.head_dim, missing.head_dim);
  d.attention_scale = 1 / std::sqrt(static_cast<float>(d.head_dim));
  if (d.head_dim > 1024 || d.heads % d.kv_heads != 0)
    c.fail(make_error(ErrorCode::kMalformed,
                      "{}: {} heads over {} kv heads of width {}; heads must be a multiple and the "
                      "width at most 1024",
                      c.file().path(), d.heads, d.kv_heads, d.head_dim));
  refuse_unknown(c);
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
  c.fail(make_error(
      ErrorCode::kUnsupported,
      "{}: found '{}', known are silu, swish, gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu",
      hf_key, name));
  return missing;
}

std::vector<int> read_windows(ConfigReader& c, int layers, int window,
                              const std::function<bool(int)>& sliding) {
  Key list{"attention.sliding_window_pattern", "layer_types"};
  Key period{"attention.sliding_window_pattern", "sliding_window_pattern"};
  if (!c.has(period)) period.hf = "_sliding_window_pattern";
  std::vector<bool> slides;
  if (c.has_list(list) && c.gguf()) {
    slides = c.booleans(list);
  } else if (c.has_list(list)) {
    for (const std::string& type : c.strings(list)) {
      if (type != "sliding_attention" && type != "full_attention")
        c.fail(make_error(ErrorCode::kUnsupported,
                          "layer_types: found '{}', known are full_attention, sliding_attention",
                          type));
      slides.push_back(type == "sliding_attention");
    }
  } else {
    int n = c.integer_or(period, 0, 1 << 20, -1);
    for (int i = 0; i < layers; ++i)
      slides.push_back(n < 0 ? sliding(i) : n == 0 || (i + 1) % n != 0);
  }
  if (static_cast<int>(slides.size()) != layers)
    c.fail(make_error(ErrorCode::kMalformed, "{}: found the kinds of {} layers, there are {}",
                      c.gguf() ? list.gguf : list.hf, slides.size(), layers));
  std::vector<int> windows(layers);
  for (std::size_t i = 0; i < windows.size() && i < slides.size(); ++i)
    windows[i] = slides[i] ? window : 0;
  return windows;
}

}  // namespace vitrine
