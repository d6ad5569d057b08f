// config.json: every setting that changes a model is read, in the older spelling too.
#include "support/golden.h"

namespace vitrine::test {
namespace {

// The fixture with another configuration, on ref.
Outcome run_with(const Golden& golden, const json::object& config) {
  TempFolder folder;
  folder.copy_from(golden.folder);
  folder.write_json("config.json", config);
  EngineOptions options = ref_options();
  options.context = golden.context;
  return run_model(open_model(folder.path()), options, golden.ids, 1);
}

json::object config_of(const Golden& golden) {
  return json::parse(read_text(golden.folder + "/config.json")).as_object();
}

// A setting, given as JSON to lay over the fixture's; null removes nothing, it is written.
struct Setting {
  const char* fixture;
  const char* changes;
};

void merge(json::object& into, const json::object& changes) {
  for (const auto& [key, value] : changes) {
    if (value.is_object() && into.contains(key) && into[key].is_object())
      merge(into[key].as_object(), value.get_object());
    else
      into[key] = value;
  }
}

// Without this, a reference that does not depend on a setting would prove nothing about it.
TEST(Config, EverySettingMatters) {
  const Setting settings[] = {
      {"llama", R"({"rms_norm_eps": 0.1})"},
      {"llama", R"({"hidden_act": "gelu"})"},
      {"llama", R"({"rope_parameters": {"rope_theta": 100.0}})"},
      {"llama-linear", R"({"rope_parameters": {"factor": 2.0}})"},
      {"llama-linear", R"({"rope_parameters": {"rope_type": "default"}})"},
      {"llama3-tied", R"({"rope_parameters": {"factor": 2.0}})"},
      {"llama3-tied", R"({"rope_parameters": {"low_freq_factor": 2.0}})"},
      {"llama3-tied", R"({"rope_parameters": {"high_freq_factor": 2.0}})"},
      {"llama3-tied", R"({"rope_parameters": {"original_max_position_embeddings": 16}})"},
      {"llama-yarn", R"({"rope_parameters": {"factor": 2.0}})"},
      {"llama-yarn", R"({"rope_parameters": {"beta_fast": 8.0}})"},
      {"llama-yarn", R"({"rope_parameters": {"beta_slow": 1.0}})"},
      {"llama-yarn", R"({"rope_parameters": {"attention_factor": 1.0}})"},
      {"qwen3", R"({"rope_parameters": {"rope_type": "default"}})"},
      {"mistral", R"({"sliding_window": null})"},
      {"mistral", R"({"sliding_window": 12})"},
      {"qwen2", R"({"use_sliding_window": false})"},
      {"qwen2", R"({"layer_types": ["sliding_attention", "sliding_attention"]})"},
      {"gemma2", R"({"attn_logit_softcapping": null})"},
      {"gemma2", R"({"final_logit_softcapping": null})"},
      {"gemma2", R"({"query_pre_attn_scalar": 16})"},
      {"gemma2", R"({"sliding_window": 8})"},
      {"gemma3", R"({"query_pre_attn_scalar": 12})"},
      {"gemma3", R"({"sliding_window": 10})"},
      {"gemma3", R"({"layer_types": ["sliding_attention", "full_attention", "full_attention"]})"},
      {"gemma3", R"({"rope_parameters": {"full_attention": {"factor": 1.0}}})"},
      {"gemma3", R"({"rope_parameters": {"sliding_attention": {"rope_theta": 100.0}}})"},
      {"phi3", R"({"sliding_window": 14})"},
      {"phi3", R"({"rope_parameters": {"partial_rotary_factor": 1.0}})"},
      {"phi3-longrope-long", R"({"rope_parameters": {"long_factor": [1.0, 1.0, 1.0, 1.0]}})"},
      {"phi3-longrope-short", R"({"rope_parameters": {"short_factor": [1.0, 1.0, 1.0, 1.0]}})"},
      {"gpt2", R"({"activation_function": "relu"})"},
      {"gpt2", R"({"scale_attn_weights": false})"},
      {"opt", R"({"do_layer_norm_before": false})"},
      {"gpt-neox", R"({"use_parallel_residual": false})"},
      {"gpt-neox", R"({"rope_parameters": {"partial_rotary_factor": 1.0}})"},
      {"gpt-neox-sequential", R"({"use_parallel_residual": true})"},
      {"xglm", R"({"scale_embedding": false})"},
      {"olmo2", R"({"rms_norm_eps": 0.1})"},
  };
  for (const Setting& s : settings) {
    Golden golden = load_golden(s.fixture);
    json::object config = config_of(golden);
    merge(config, json::parse(s.changes).as_object());
    EXPECT_GT(max_difference(golden.logits, run_with(golden, config).logits), 0.02)
        << s.fixture << ": " << s.changes;
  }
}

// rope_theta, rope_scaling and partial_rotary_factor beside each other, as files had them before
// rope_parameters; no layer_types.
json::object older_spelling(json::object config) {
  std::string type(config.at("model_type").as_string());
  json::value dtype = config["dtype"];  // a copy: what is added may move the others
  config["torch_dtype"] = std::move(dtype);
  config.erase("dtype");
  config.erase("layer_types");
  if (!config.contains("rope_parameters")) return config;
  json::object rope = config["rope_parameters"].as_object();
  config.erase("rope_parameters");
  config.erase("_sliding_window_pattern");
  if (type == "gemma3_text") {
    config["sliding_window_pattern"] = 3;
    config["rope_local_base_freq"] = rope["sliding_attention"].at("rope_theta");
    json::object full = rope["full_attention"].as_object();
    rope = std::move(full);
  }
  bool neox = type == "gpt_neox";
  config[neox ? "rotary_emb_base" : "rope_theta"] = rope["rope_theta"];
  if (rope.contains("partial_rotary_factor"))
    config[neox ? "rotary_pct" : "partial_rotary_factor"] = rope["partial_rotary_factor"];
  rope.erase("rope_theta");
  rope.erase("partial_rotary_factor");
  if (type == "phi3") rope.erase("original_max_position_embeddings");
  rope["type"] = json::value(rope["rope_type"]);
  rope.erase("rope_type");
  config["rope_scaling"] = rope["type"] == "default" ? json::value(nullptr) : json::value(rope);
  return config;
}

TEST(Config, OlderSpellingIsTheSame) {
  for (const std::string& name : golden_names()) {
    Golden golden = load_golden(name);
    json::object config = config_of(golden);
    Outcome now = run_with(golden, config), before = run_with(golden, older_spelling(config));
    EXPECT_TRUE(same_bits(now, before)) << name;
  }
}

}  // namespace
}  // namespace vitrine::test
