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
  // Early Phi 3 files say su, or yarn, for what is longrope.
  bool longrope = type == "su" || (type == "yarn" && c.has({"", key("short_factor")}));
  r.type = longrope ? "longrope" : type == "mrope" ? "default" : type;
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
  float low_wavelength = original / c.low_freq_factor,
        high_wavelength = original / c.high_freq_factor;
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

void read_gguf(ConfigReader& c, RopeConfig& r) {
  // A factor without a type is a linear one; scale_linear is its older name.
  r.factor = c.number_or({"rope.scale_linear", ""}, 0, 1e6, 1);
  r.factor = c.number_or({"rope.scaling.factor", ""}, 0, 1e6, r.factor);
  if (r.factor == 0) r.factor = 1;
  std::string type = c.string_or({"rope.scaling.type", ""}, "linear");
  r.type = type == "none" ? "default" : type;
  r.original_context =
      c.integer_or({"rope.scaling.original_context_length", ""}, 1, 1 << 30, r.context);
  r.attention_factor = c.number_or({"rope.scaling.attn_factor", ""}, 0, 1e6, 0);
  if (r.type != "yarn") return;
  r.beta_fast = c.number_or({"rope.scaling.yarn_beta_fast", ""}, 1e-6, 1e6, 32);
  r.beta_slow = c.number_or({"rope.scaling.yarn_beta_slow", ""}, 1e-6, 1e6, 1);
  // attn_factor multiplies the formula's; yarn_attn_factor is HF's attention_factor, in its place.
  if (r.attention_factor > 0) r.attention_factor *= yarn_mscale(r.factor, 1);
  r.attention_factor =
      c.number_or({"rope.scaling.yarn_attn_factor", ""}, 0, 1e6, r.attention_factor);
}

bool all_positive(const std::vector<float>& factors) {
  return std::all_of(factors.begin(), factors.end(),
                     [](float f) { return std::isfinite(f) && f > 0; });
}

void check(ConfigReader& c, const RopeConfig& r) {
  constexpr std::string_view kTypes[] = {"default", "linear", "llama3", "yarn", "longrope"};
  if (std::find(std::begin(kTypes), std::end(kTypes), r.type) == std::end(kTypes))
    c.fail(make_error(
        ErrorCode::kUnsupported,
        "rope scaling '{}' is not known; known are default, linear, llama3, yarn, longrope",
        r.type));
  if (r.dims < 2 || r.dims % 2 != 0)
    c.fail(make_error(ErrorCode::kMalformed,
                      "rope: {} dimensions of each head rotate, must be even and at least 2",
                      r.dims));
  if (r.type != "longrope" || c.gguf()) return;
  auto n = static_cast<std::size_t>(r.dims / 2);
  for (const auto* factors : {&r.short_factors, &r.long_factors})
    if (factors->size() != n || !all_positive(*factors))
      c.fail(make_error(ErrorCode::kMalformed, "rope {}: found {} values, must be {}, all positive",
                        factors == &r.short_factors ? "short_factor" : "long_factor",
                        factors->size(), n));
}

}  // namespace

RopeConfig read_rope(ConfigReader& c, int head_dim, int context, std::string_view layer_type,
                     float default_base) {
  bool sliding = layer_type == "sliding_attention";
  RopeConfig r;
  r.context = r.original_context = context;
  if (c.gguf()) {
    r.dims = c.integer_or({"rope.dimension_count", ""}, 2, head_dim, head_dim);
    r.base = c.number_or({sliding ? "rope.freq_base_swa" : "rope.freq_base", ""}, 1e-3, kMax,
                         default_base);
    if (!sliding) read_gguf(c, r);
    check(c, r);
    return r;
  }
  double partial = c.number_or({"", "partial_rotary_factor"}, 1e-3, 1, 1);
  partial = c.number_or({"", "rotary_pct"}, 1e-3, 1, partial);
  r.base =
      c.number_or({"", sliding ? "rope_local_base_freq" : "rope_theta"}, 1e-3, kMax, default_base);
  r.base = c.number_or({"", "rotary_emb_base"}, 1e-3, kMax, r.base);
  r.original_context = c.integer_or({"", "original_max_position_embeddings"}, 1, 1 << 30, context);
  std::string scope = "rope_scaling";
  if (c.has({"", "rope_parameters.rope_type"}) || c.has({"", "rope_parameters.rope_theta"}))
    scope = "rope_parameters";
  std::string layered = fmt::format("rope_parameters.{}", layer_type);
  if (!layer_type.empty() && c.has({"", layered + ".rope_theta"})) scope = layered;
  if (!(scope == "rope_scaling" && sliding)) {
    r.base = c.number_or({"", scope + ".rope_theta"}, 1e-3, kMax, r.base);
    partial = c.number_or({"", scope + ".partial_rotary_factor"}, 1e-3, 1, partial);
    read_hf(c, r, scope);
  }
  // A share such as 0.7 may come out a little below the whole number that is meant.
  r.dims = static_cast<int>(head_dim * partial + 1e-4);
  if (r.type == "longrope" && r.factor == 1)
    r.factor = static_cast<float>(context) / static_cast<float>(r.original_context);
  check(c, r);
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
    int served = context > 0 ? context : c.context;
    const auto& divisors = served > c.original_context ? c.long_factors : c.short_factors;
    for (std::size_t i = 0; i < out.inv_freq.size() && i < divisors.size(); ++i)
      out.inv_freq[i] /= divisors[i];
    if (c.attention_factor > 0)
      out.scale = c.attention_factor;
    else if (c.factor > 1 && c.original_context > 1)
      out.scale =
          std::sqrt(1 + std::log(c.factor) / std::log(static_cast<float>(c.original_context)));
  }
  return out;
}

Rope::Rope(WeightLoader& w, RopeConfig config, int context, int max_tokens) {
  int pairs = config.dims / 2;
  auto factors = [&](const char* name, bool required) {
    Name tensor{name, ""};
    std::vector<float> f = required ? w.floats(tensor, pairs) : w.floats_if_any(tensor, pairs);
    if (!all_positive(f))
      w.fail(make_error(ErrorCode::kMalformed, "tensor '{}': a factor is not positive", name));
    return f;
  };
  if (w.has({"rope_factors_long.weight", ""}) || (w.gguf() && config.type == "longrope")) {
    config.type = "longrope";
    config.short_factors = factors("rope_factors_short.weight", true);
    config.long_factors = factors("rope_factors_long.weight", true);
  }
  RopeFrequencies f = rope_frequencies(config, context);
  std::vector<float> divisors = factors("rope_freqs.weight", false);
  for (std::size_t i = 0; i < divisors.size(); ++i) f.inv_freq[i] /= divisors[i];
  inv_freq_ = w.vector(f.inv_freq);
  table_ = w.activations({max_tokens, pairs, 2});
  scale_ = f.scale;
}

Tensor Rope::operator()(Ops& ops, Tensor positions) const {
  if (!table_.defined()) return {};
  Tensor table = table_.rows(positions.dim(0));
  ops.rope_table(table, positions, inv_freq_, scale_);
  return table;
}

}  // namespace vitrine
