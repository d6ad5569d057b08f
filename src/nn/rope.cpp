#include "nn/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace vitrine {
namespace {

constexpr double kMax = 1e12;

void read_hf(ConfigReader& c, RopeConfig& r, const std::string& scope) {
  auto key = [&](const char* name) { return scope + "." + name; };
  std::string type = c.string_or({"", key("rope_type")}, c.string_or({"", key("type")}, "default"));
  r.type = type == "su" ? "longrope" : type == "mrope" ? "default" : type;
  r.factor = c.number_or({"", key("factor")}, 1e-6, 1e6, 1);
  r.low_freq_factor = c.number_or({"", key("low_freq_factor")}, 1e-6, 1e6, 1);
  r.high_freq_factor = c.number_or({"", key("high_freq_factor")}, 1e-6, 1e6, 4);
  r.beta_fast = c.number_or({"", key("beta_fast")}, 1e-6, 1e6, 32);
  r.beta_slow = c.number_or({"", key("beta_slow")}, 1e-6, 1e6, 1);
  r.truncate = c.boolean_or({"", key("truncate")}, true);
  r.attention_factor = c.number_or({"", key("attention_factor")}, 0, 1e6, 0);
  r.mscale = c.number_or({"", key("mscale")}, 0, 1e6, 0);
  r.mscale_all_dim = c.number_or({"", key("mscale_all_dim")}, 0, 1e6, 0);
  r.original_context =
      c.integer_or({"", key("original_max_position_embeddings")}, 1, 1 << 30, r.original_context);
  r.short_factors = c.numbers({"", key("short_factor")});
  r.long_factors = c.numbers({"", key("long_factor")});
}

float yarn_mscale(float factor, float mscale) {
  return factor <= 1 ? 1.0f : 0.1f * mscale * std::log(factor) + 1.0f;
}

void stretch_llama3(const RopeConfig& c, std::vector<float>& inv_freq) {
  auto original = static_cast<float>(c.original_context);
  float low_wavelength = original / c.low_freq_factor, high_wavelength = original / c.high_freq_factor;
  for (float& f : inv_freq) {
    float wavelength = 2 * std::numbers::pi_v<float> / f;
    if (wavelength < high_wavelength) continue;
    if (wavelength > low_wavelength) {
      f /= c.factor;
      continue;
    }
    float smooth =
        (original / wavelength - c.low_freq_factor) / (c.high_freq_factor - c.low_freq_factor);
    f = (1 - smooth) * f / c.factor + smooth * f;
  }
}

void stretch_yarn(const RopeConfig& c, std::vector<float>& inv_freq) {
  auto border = [&](double rotations) {
    return c.dims * std::log(c.original_context / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(static_cast<double>(c.base)));
  };
  double low = border(c.beta_fast), high = border(c.beta_slow);
  if (c.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, c.dims - 1.0);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    inv_freq[i] = static_cast<float>(inv_freq[i] / c.factor * ramp + inv_freq[i] * (1 - ramp));
  }
}

}  // namespace

RopeConfig read_rope(ConfigReader& c, int head_dim, int context, std::string_view layer_type,
                     float default_base) {
  RopeConfig r;
  r.original_context = context;
  if (c.gguf()) {
    r.dims = c.integer_or({"rope.dimension_count", ""}, 2, head_dim, head_dim);
    r.base = c.number_or({"rope.freq_base", ""}, 1e-3, kMax, default_base);
    std::string type = c.string_or({"rope.scaling.type", ""}, "none");
    r.type = type == "none" ? "default" : type;
    r.factor = c.number_or({"rope.scaling.factor", ""}, 0, 1e6, 1);
    if (r.factor == 0) r.factor = 1;
    r.original_context =
        c.integer_or({"rope.scaling.original_context_length", ""}, 1, 1 << 30, context);
    // GGUF keeps the factor that multiplies the yarn formula, not the product.
    float extra = c.number_or({"rope.scaling.attn_factor", ""}, 0, 1e6, 0);
    if (r.type == "yarn") {
      r.beta_fast = c.number_or({"rope.scaling.yarn_beta_fast", ""}, 1e-6, 1e6, 32);
      r.beta_slow = c.number_or({"rope.scaling.yarn_beta_slow", ""}, 1e-6, 1e6, 1);
      if (extra > 0) r.attention_factor = extra * yarn_mscale(r.factor, 1);
    } else {
      r.attention_factor = extra;
    }
    return r;
  }
  double partial = c.number_or({"", "partial_rotary_factor"}, 1e-3, 1, 1);
  partial = c.number_or({"", "rotary_pct"}, 1e-3, 1, partial);
  r.base = c.number_or({"", "rope_theta"}, 1e-3, kMax, default_base);
  r.base = c.number_or({"", "rotary_emb_base"}, 1e-3, kMax, r.base);
  r.original_context = c.integer_or({"", "original_max_position_embeddings"}, 1, 1 << 30, context);
  std::string scope = "rope_scaling";
  if (c.has({"", "rope_parameters.rope_type"}) || c.has({"", "rope_parameters.rope_theta"}))
    scope = "rope_parameters";
  std::string layered = fmt::format("rope_parameters.{}", layer_type);
  if (!layer_type.empty() && c.has({"", layered + ".rope_theta"})) scope = layered;
  // In the older spelling a model's rope_scaling concerns the layers with full attention.
  if (scope == "rope_scaling" && layer_type == "sliding_attention") scope = "";
  if (!scope.empty()) {
    r.base = c.number_or({"", scope + ".rope_theta"}, 1e-3, kMax, r.base);
    partial = c.number_or({"", scope + ".partial_rotary_factor"}, 1e-3, 1, partial);
    read_hf(c, r, scope);
  }
  r.dims = static_cast<int>(head_dim * partial) / 2 * 2;
  if (r.type == "longrope" && r.factor == 1)
    r.factor = static_cast<float>(context) / static_cast<float>(r.original_context);
  for (const char* known : {"default", "linear", "llama3", "yarn", "longrope"})
    if (r.type == known) return r;
  c.fail(make_error(ErrorCode::kUnsupported,
                    "rope scaling '{}' is not known; known are default, linear, llama3, yarn, longrope",
                    r.type));
  return r;
}

RopeFrequencies rope_frequencies(const RopeConfig& c, int context) {
  RopeFrequencies out;
  for (int i = 0; i < c.dims / 2; ++i)
    out.inv_freq.push_back(static_cast<float>(
        1.0 / std::pow(static_cast<double>(c.base), 2.0 * i / static_cast<double>(c.dims))));
  if (c.type == "linear") {
    for (float& f : out.inv_freq) f /= c.factor;
  } else if (c.type == "llama3") {
    stretch_llama3(c, out.inv_freq);
  } else if (c.type == "yarn") {
    stretch_yarn(c, out.inv_freq);
    if (c.attention_factor > 0)
      out.scale = c.attention_factor;
    else if (c.mscale > 0 && c.mscale_all_dim > 0)
      out.scale = yarn_mscale(c.factor, c.mscale) / yarn_mscale(c.factor, c.mscale_all_dim);
    else
      out.scale = yarn_mscale(c.factor, 1);
  } else if (c.type == "longrope") {
    const auto& divisors = context > c.original_context ? c.long_factors : c.short_factors;
    for (std::size_t i = 0; i < out.inv_freq.size() && i < divisors.size(); ++i)
      out.inv_freq[i] /= divisors[i];
    if (c.attention_factor > 0)
      out.scale = c.attention_factor;
    else if (c.factor > 1)
      out.scale = std::sqrt(1 + std::log(c.factor) / std::log(static_cast<float>(c.original_context)));
  }
  return out;
}

Rope::Rope(WeightLoader& w, const RopeConfig& config, int context, int max_tokens,
           const std::vector<float>& divisors) {
  RopeFrequencies f = rope_frequencies(config, context);
  for (std::size_t i = 0; i < divisors.size() && i < f.inv_freq.size(); ++i) f.inv_freq[i] /= divisors[i];
  inv_freq_ = w.vector(f.inv_freq);
  table_ = w.activations({max_tokens, config.dims / 2, 2});
  scale_ = f.scale;
}

Tensor Rope::operator()(Backend& b, Tensor positions) const {
  Tensor table = table_.rows(positions.dim(0));
  b.rope_table(table, positions, inv_freq_, scale_);
  return table;
}

}  // namespace vitrine
