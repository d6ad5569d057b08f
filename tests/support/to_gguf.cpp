#include "support/to_gguf.h"

#include <cmath>
#include <numbers>
#include <optional>

namespace vitrine::test {
namespace {

struct Stem {
  const char* hf;
  const char* gguf;
};

// Tensors outside the layers, without the name of the model in front.
constexpr Stem kModelStems[] = {
    {"embed_tokens", "token_embd"},
    {"wte", "token_embd"},
    {"embed_in", "token_embd"},
    {"wpe", "position_embd"},
    {"norm", "output_norm"},
    {"ln_f", "output_norm"},
    {"final_layer_norm", "output_norm"},
    {"lm_head", "output"},
    {"embed_out", "output"},
};

constexpr Stem kLayerStems[] = {
    {"input_layernorm", "attn_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"ln_1", "attn_norm"},
    {"ln_2", "ffn_norm"},
    {"attn.c_attn", "attn_qkv"},
    {"attn.c_proj", "attn_output"},
    {"mlp.c_fc", "ffn_up"},
    {"mlp.c_proj", "ffn_down"},
    {"attention.query_key_value", "attn_qkv"},
    {"attention.dense", "attn_output"},
    {"mlp.dense_h_to_4h", "ffn_up"},
    {"mlp.dense_4h_to_h", "ffn_down"},
};

struct Name {
  std::string layer;  // "3", or "" outside the layers
  std::string stem;   // "attn_q"
  std::string end;    // "weight", "bias"
  std::string full() const {
    return (layer.empty() ? "" : "blk." + layer + ".") + stem + "." + end;
  }
};

Name translate(std::string name, const std::string& arch) {
  for (const char* prefix : {"model.", "transformer.", "gpt_neox."})
    if (name.starts_with(prefix)) name = name.substr(std::string_view(prefix).size());
  Name out;
  bool in_layer = name.starts_with("layers.") || name.starts_with("h.");
  if (in_layer) {
    name = name.substr(name.find('.') + 1);
    out.layer = name.substr(0, name.find('.'));
    name = name.substr(name.find('.') + 1);
  }
  out.end = name.substr(name.rfind('.') + 1);
  name = name.substr(0, name.rfind('.'));
  if (name == "post_attention_layernorm") {
    bool after = arch == "gemma2" || arch == "gemma3" || arch == "olmo2";
    out.stem = after ? "post_attention_norm" : "ffn_norm";
    return out;
  }
  auto find = [&](auto& stems) {
    for (const Stem& s : stems)
      if (name == s.hf) out.stem = s.gguf;
  };
  in_layer ? find(kLayerStems) : find(kModelStems);
  VT_CHECK(!out.stem.empty(), "no GGUF name for '{}'", name);
  return out;
}

// Row i of the result is row order(i) of `w`; a bias is a column of rows.
template <typename Order>
Weights reorder_rows(const Weights& w, Order order) {
  Weights out = w;
  std::int64_t rows = w.shape[0], width = static_cast<std::int64_t>(w.values.size()) / rows;
  for (std::int64_t r = 0; r < rows; ++r)
    std::copy_n(w.values.begin() + order(r) * width, width, out.values.begin() + r * width);
  return out;
}

// Rotary halves become neighbours: row (head, 2j + s) is HF's row (head, s * D/2 + j).
Weights interleave_rotary(const Weights& w, std::int64_t head_dim) {
  return reorder_rows(w, [=](std::int64_t r) {
    std::int64_t i = r % head_dim;
    return r - i + (i % 2) * (head_dim / 2) + i / 2;
  });
}

// (head, 3, D) to (3, head, D).
Weights split_qkv(const Weights& w, std::int64_t heads) {
  std::int64_t head_dim = w.shape[0] / heads / 3;
  return reorder_rows(w, [=](std::int64_t r) {
    std::int64_t part = r / head_dim / heads, head = r / head_dim % heads;
    return (head * 3 + part) * head_dim + r % head_dim;
  });
}

Weights transpose(const Weights& w) {
  Weights out{{w.shape[1], w.shape[0]}, std::vector<float>(w.values.size())};
  for (std::int64_t r = 0; r < w.shape[0]; ++r)
    for (std::int64_t c = 0; c < w.shape[1]; ++c)
      out.values[c * w.shape[0] + r] = w.values[r * w.shape[1] + c];
  return out;
}

// Reads config.json under the first of several names.
class Config {
 public:
  explicit Config(const json::object& object) : object_(object) {}
  const json::value* find(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (auto* v = object_.if_contains(name); v != nullptr && !v->is_null()) return v;
    return nullptr;
  }
  std::uint32_t integer(std::initializer_list<const char*> names) const {
    const json::value* v = find(names);
    VT_CHECK(v != nullptr, "config.json has no {}", *names.begin());
    return v->to_number<std::uint32_t>();
  }
  std::optional<float> number(std::initializer_list<const char*> names) const {
    const json::value* v = find(names);
    return v ? std::optional(v->to_number<float>()) : std::nullopt;
  }
  std::uint32_t heads() const { return integer({"num_attention_heads", "n_head"}); }
  std::uint32_t width() const { return integer({"hidden_size", "n_embd"}); }
  std::uint32_t head_dim() const {
    return find({"head_dim"}) ? integer({"head_dim"}) : width() / heads();
  }
  // The rope settings; of the full layers where layers differ.
  json::object rope() const {
    auto* rope = object_.if_contains("rope_parameters");
    if (rope == nullptr) return {};
    auto* full = rope->as_object().if_contains("full_attention");
    return full ? full->as_object() : rope->as_object();
  }

 private:
  const json::object& object_;
};

Weights transform(const Name& name, Weights w, const std::string& arch, const Config& c) {
  bool matrix = w.shape.size() == 2;
  if (arch == "llama" && (name.stem == "attn_q" || name.stem == "attn_k"))
    return interleave_rotary(w, c.head_dim());
  if (arch == "gptneox" && name.stem == "attn_qkv") return split_qkv(w, c.heads());
  if (arch == "gpt2" && matrix && !name.layer.empty()) return transpose(w);
  if (arch.starts_with("gemma") && !matrix)
    for (float& x : w.values) x += 1;
  return w;
}

void add_longrope(GgufImage& out, const std::string& arch, const Config& c,
                  const json::object& rope) {
  auto factors = [&](const char* name) {
    auto values = json::value_to<std::vector<float>>(rope.at(name));
    return Weights{{static_cast<std::int64_t>(values.size())}, values};
  };
  out.tensor("rope_factors_short.weight", factors("short_factor"), DType::kF32);
  out.tensor("rope_factors_long.weight", factors("long_factor"), DType::kF32);
  double original = rope.at("original_max_position_embeddings").to_number<double>();
  double stretch = c.integer({"max_position_embeddings"}) / original;
  out.add(arch + ".rope.scaling.attn_factor",
          static_cast<float>(std::sqrt(1 + std::log(stretch) / std::log(original))));
}

// llama3's scaling is written as divisors of the frequencies.
Weights llama3_divisors(const json::object& rope, std::int64_t dims) {
  auto get = [&](const char* name) { return rope.at(name).to_number<double>(); };
  double original = get("original_max_position_embeddings"), factor = get("factor");
  double low = get("low_freq_factor"), high = get("high_freq_factor");
  Weights w{{dims / 2}, {}};
  for (std::int64_t i = 0; i < dims / 2; ++i) {
    double wavelength = 2 * std::numbers::pi * std::pow(get("rope_theta"), 2.0 * i / dims);
    double smooth = (original / wavelength - low) / (high - low);
    double divisor = wavelength < original / high  ? 1
                     : wavelength > original / low ? factor
                                                   : 1 / ((1 - smooth) / factor + smooth);
    w.values.push_back(static_cast<float>(divisor));
  }
  return w;
}

void add_rope(GgufImage& out, const std::string& arch, const Config& c) {
  json::object rope = c.rope();
  if (rope.empty()) return;
  auto number = [&](const char* name) { return rope.at(name).to_number<float>(); };
  std::string prefix = arch + ".rope.", type(rope.at("rope_type").as_string());
  float partial = rope.contains("partial_rotary_factor") ? number("partial_rotary_factor") : 1;
  auto dims = static_cast<std::uint32_t>(static_cast<float>(c.head_dim()) * partial);
  out.add(prefix + "dimension_count", dims);
  if (arch != "gptneox" && arch != "gemma2") out.add(prefix + "freq_base", number("rope_theta"));
  if (type == "linear" || type == "yarn")
    out.add(prefix + "scaling.type", type).add(prefix + "scaling.factor", number("factor"));
  if (type == "yarn") {
    out.add(prefix + "scaling.original_context_length",
            rope.at("original_max_position_embeddings").to_number<std::uint32_t>());
    for (auto [hf, key] : {std::pair{"beta_fast", "yarn_beta_fast"},
                           {"beta_slow", "yarn_beta_slow"},
                           {"attention_factor", "yarn_attn_factor"}})
      if (rope.contains(hf)) out.add(prefix + "scaling." + key, number(hf));
  }
  if (type == "llama3") out.tensor("rope_freqs.weight", llama3_divisors(rope, dims), DType::kF32);
  if (type == "longrope") add_longrope(out, arch, c, rope);
}

void add_keys(GgufImage& out, const std::string& arch, const Config& c,
              const json::object& config) {
  auto key = [&](const char* name) { return arch + "." + name; };
  out.add("general.architecture", arch);
  out.add(key("block_count"), c.integer({"num_hidden_layers", "n_layer"}));
  out.add(key("context_length"), c.integer({"max_position_embeddings", "n_positions"}));
  out.add(key("embedding_length"), c.width());
  out.add(key("feed_forward_length"), c.integer({"intermediate_size", "n_inner"}));
  out.add(key("attention.head_count"), c.heads());
  if (c.find({"num_key_value_heads"}))
    out.add(key("attention.head_count_kv"), c.integer({"num_key_value_heads"}));
  if (c.find({"head_dim"}))
    out.add(key("attention.key_length"), c.head_dim())
        .add(key("attention.value_length"), c.head_dim());
  if (auto eps = c.number({"rms_norm_eps"}))
    out.add(key("attention.layer_norm_rms_epsilon"), *eps);
  else
    out.add(key("attention.layer_norm_epsilon"),
            *c.number({"layer_norm_eps", "layer_norm_epsilon"}));
  if (arch == "gptneox")
    out.add(key("use_parallel_residual"), config.at("use_parallel_residual").as_bool());
  if (arch == "gemma2" || arch == "gemma3" || arch == "phi3")
    out.add(key("attention.sliding_window"),
            c.find({"sliding_window"}) ? c.integer({"sliding_window"}) : 0u);
  for (const char* cap : {"attn_logit_softcapping", "final_logit_softcapping"})
    if (auto value = c.number({cap})) out.add(key(cap), *value);
  if (arch == "phi3")
    out.add(key("rope.scaling.original_context_length"),
            c.integer({"original_max_position_embeddings"}));
  if (arch == "gemma3") {
    // The converter leaves the pattern out and so knows only models with one full layer in six.
    out.add(key("attention.sliding_window_pattern"), 3u);
    out.add(
        key("rope.freq_base_swa"),
        config.at("rope_parameters").at("sliding_attention").at("rope_theta").to_number<float>());
  }
}

}  // namespace

std::string gguf_architecture(const json::object& config) {
  const Stem names[] = {{"llama", "llama"}, {"mistral", "llama"}, {"qwen2", "qwen2"},
                        {"qwen3", "qwen3"}, {"gemma2", "gemma2"}, {"gemma3_text", "gemma3"},
                        {"phi3", "phi3"},   {"gpt2", "gpt2"},     {"gpt_neox", "gptneox"},
                        {"olmo2", "olmo2"}};
  for (const Stem& s : names)
    if (config.at("model_type") == s.hf) return s.gguf;
  return "";
}

GgufImage to_gguf(const json::object& config, const WeightMap& weights, DType matrix_type) {
  std::string arch = gguf_architecture(config);
  VT_CHECK(!arch.empty());
  Config c(config);
  GgufImage out;
  add_keys(out, arch, c, config);
  add_rope(out, arch, c);
  for (const auto& [hf, w] : weights) {
    Name name = translate(hf, arch);
    bool wide = w.shape.size() == 1 || name.stem == "position_embd";
    out.tensor(name.full(), transform(name, w, arch, c), wide ? DType::kF32 : matrix_type);
  }
  return out;
}

}  // namespace vitrine::test
