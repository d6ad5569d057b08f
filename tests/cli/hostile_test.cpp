// Model files that are well formed but make no sense: each is refused by name, quickly and cheaply,
// and never by a crash.
#include <algorithm>
#include <limits>

#include "cli/program.h"
#include "support/golden.h"
#include "support/to_gguf.h"

namespace vitrine::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Exit 1 with a message that has `parts`. `inspect` may answer, but must live.
void expect_unusable(const std::string& path, const std::vector<std::string>& parts) {
  expect_refused({"generate", path, "--ids", "5,6", "--max-tokens", "2", "--temperature", "0"},
                 parts);
  Exit e = vitrine({"inspect", path, "--json"});
  EXPECT_TRUE(e.code == 0 || e.code == 1) << e.code << e.err;
  // A sanitizer's own memory is counted too, so that the bound is a loose one.
  EXPECT_LT(e.max_rss_kib, 400 << 10);
}

// --- config.json

struct BadConfig {
  const char* fixture;
  const char* changes;  // laid over config.json, member by member
  const char* named;    // in the message
};

void merge(json::object& into, const json::object& changes) {
  for (const auto& [key, value] : changes) {
    if (value.is_object() && into.contains(key) && into[key].is_object())
      merge(into[key].as_object(), value.get_object());
    else
      into[key] = value;
  }
}

class HostileConfig : public ::testing::TestWithParam<BadConfig> {};

TEST_P(HostileConfig, IsRefusedByName) {
  const BadConfig& bad = GetParam();
  TempFolder folder;
  folder.copy_from(fixture(bad.fixture));
  json::object config = folder.read_json("config.json");
  merge(config, json::parse(bad.changes).as_object());
  folder.write_json("config.json", config);
  SCOPED_TRACE(bad.changes);
  expect_unusable(folder.path(), {bad.named});
}

const BadConfig kBadConfigs[] = {
    {"llama", R"({"num_attention_heads": 0})", "num_attention_heads"},
    {"llama", R"({"num_attention_heads": -6})", "num_attention_heads"},
    {"llama", R"({"num_attention_heads": 4})", "q_proj"},
    {"llama", R"({"num_attention_heads": "six"})", "num_attention_heads"},
    {"llama", R"({"num_attention_heads": 6.5})", "num_attention_heads"},
    {"llama", R"({"num_attention_heads": [6, 6]})", "num_attention_heads"},
    {"llama", R"({"num_key_value_heads": 0})", "num_key_value_heads"},
    {"llama", R"({"num_key_value_heads": 4})", "kv heads"},
    {"llama", R"({"num_key_value_heads": 12})", "kv heads"},
    {"llama", R"({"num_key_value_heads": 3})", "k_proj"},
    {"llama", R"({"head_dim": 0})", "head_dim"},
    {"llama", R"({"head_dim": 7})", "7"},
    {"llama", R"({"head_dim": 16})", "q_proj"},
    {"llama", R"({"head_dim": 2147483648})", "head_dim"},
    {"llama", R"({"num_hidden_layers": 0})", "num_hidden_layers"},
    {"llama", R"({"num_hidden_layers": 3})", "layers.2."},
    {"llama", R"({"num_hidden_layers": 513})", "layers"},
    {"llama", R"({"num_hidden_layers": 2147483648})", "num_hidden_layers"},
    {"llama", R"({"num_hidden_layers": 18446744073709551615})", "num_hidden_layers"},
    {"llama", R"({"num_hidden_layers": 1e300})", "num_hidden_layers"},
    {"llama", R"({"hidden_size": 0})", "hidden_size"},
    {"llama", R"({"hidden_size": 64})", "embed_tokens"},
    {"llama", R"({"hidden_size": 96})", "embed_tokens"},
    {"llama", R"({"intermediate_size": 0})", "intermediate_size"},
    {"llama", R"({"intermediate_size": 41})", "mlp."},
    {"llama", R"({"max_position_embeddings": 0})", "max_position_embeddings"},
    {"llama", R"({"max_position_embeddings": 4611686018427387904})", "max_position_embeddings"},
    {"llama", R"({"rms_norm_eps": -1e-6})", "rms_norm_eps"},
    {"llama", R"({"rms_norm_eps": 1e300})", "rms_norm_eps"},
    {"llama", R"({"rms_norm_eps": "small"})", "rms_norm_eps"},
    {"llama", R"({"hidden_act": "step"})", "step"},
    {"llama", R"({"rope_parameters": {"rope_theta": 0}})", "rope_theta"},
    {"llama", R"({"rope_parameters": {"rope_theta": -1}})", "rope_theta"},
    {"llama", R"({"rope_parameters": {"rope_type": "spiral"}})", "spiral"},
    {"llama", R"({"rope_parameters": {"partial_rotary_factor": 0}})", "partial_rotary_factor"},
    {"llama", R"({"rope_parameters": {"partial_rotary_factor": 2}})", "partial_rotary_factor"},
    {"llama", R"({"rope_parameters": {"partial_rotary_factor": 0.05}})", "rope"},
    {"llama", R"({"architectures": ["FooForCausalLM"]})", "FooForCausalLM"},
    {"llama", R"({"architectures": []})", "architectures"},
    {"llama", R"({"architectures": 5})", "architectures"},
    {"llama", R"({"num_local_experts": 8})", "num_local_experts"},
    {"llama", R"({"quantization_config": {"quant_method": "gptq"}})", "gptq"},
    {"llama-linear", R"({"rope_parameters": {"factor": 0}})", "factor"},
    {"llama-linear", R"({"rope_parameters": {"factor": -4}})", "factor"},
    {"llama-yarn", R"({"rope_parameters": {"original_max_position_embeddings": 0}})",
     "original_max_position_embeddings"},
    {"llama-yarn", R"({"rope_parameters": {"beta_fast": 0}})", "beta_fast"},
    {"llama3-tied", R"({"rope_parameters": {"low_freq_factor": 0}})", "low_freq_factor"},
    {"llama3-tied", R"({"tie_word_embeddings": false})", "lm_head"},
    {"mistral", R"({"sliding_window": -5})", "sliding_window"},
    {"mistral", R"({"sliding_window": 0})", "sliding_window"},
    {"qwen2", R"({"layer_types": ["full_attention"]})", "layer_types"},
    {"qwen2", R"({"layer_types": ["full_attention", "linear_attention"]})", "linear_attention"},
    {"gemma2", R"({"query_pre_attn_scalar": 0})", "query_pre_attn_scalar"},
    {"gemma2", R"({"final_logit_softcapping": -1})", "final_logit_softcapping"},
    {"gemma3", R"({"sliding_window": -1})", "sliding_window"},
    {"phi3-longrope-long", R"({"rope_parameters": {"long_factor": [1.0]}})", "long_factor"},
    {"phi3-longrope-long", R"({"rope_parameters": {"short_factor": [1.0, 0, 1.0, 1.0]}})",
     "short_factor"},
    {"gpt2", R"({"n_positions": 81})", "wpe"},
    {"gpt2", R"({"n_head": 5})", "heads"},
    {"opt", R"({"max_position_embeddings": 100})", "embed_positions"},
    {"opt", R"({"word_embed_proj_dim": 16})", "word_embed_proj_dim"},
    {"xglm", R"({"max_position_embeddings": 268435456})", "max_position_embeddings"},
    {"xglm", R"({"attention_heads": 0})", "attention_heads"},
    {"gpt-neox", R"({"rope_parameters": {"partial_rotary_factor": 0.1}})", "rope"},
    {"olmo2", R"({"sliding_window": 8})", "sliding_window"},
};
INSTANTIATE_TEST_SUITE_P(All, HostileConfig, ::testing::ValuesIn(kBadConfigs));

TEST(HostileFolder, BrokenConfig) {
  TempFolder folder;
  folder.copy_from(fixture("llama"));
  for (const char* text : {"", "{", "[]", "5", R"({"architectures": ["LlamaForCausalLM"]})"}) {
    folder.write("config.json", text);
    SCOPED_TRACE(text);
    expect_refused({"generate", folder.path(), "--ids", "5"}, {});
  }
  folder.write("config.json", std::string(100000, '['));
  expect_refused({"generate", folder.path(), "--ids", "5"}, {"config.json"});
  folder.write("config.json", "{\"architectures\": [\"Llama\xFF\"]}");
  expect_refused({"generate", folder.path(), "--ids", "5"}, {});
}

// Without any one of its tensors, a model is refused by that tensor's name.
TEST(HostileFolder, EveryTensorIsMissed) {
  for (const char* name : {"llama", "gemma3", "gpt2", "gpt-neox", "opt", "olmo2"}) {
    WeightMap weights = read_weights(*open_model(fixture(name)));
    TempFolder folder;
    folder.copy_from(fixture(name));
    for (const auto& [tensor, w] : weights) {
      if (tensor.ends_with(".bias")) continue;  // a model may have none
      WeightMap without = weights;
      without.erase(tensor);
      folder.write("model.safetensors", safetensors_image(without, DType::kBF16));
      auto engine = Engine::create(open_model(folder.path()), ref_options());
      ASSERT_FALSE(engine.ok()) << name << " without " << tensor;
      EXPECT_THAT(engine.error().message, ::testing::HasSubstr(tensor));
    }
  }
}

TEST(HostileFolder, TensorsOfTheWrongShape) {
  WeightMap weights = read_weights(*open_model(fixture("llama")));
  TempFolder folder;
  folder.copy_from(fixture("llama"));
  for (const auto& [tensor, w] : weights) {
    WeightMap changed = weights;
    Weights& c = changed[tensor];
    std::int64_t rows = static_cast<std::int64_t>(c.values.size()) / c.shape.back()++;
    c.values.resize(c.values.size() + static_cast<std::size_t>(rows));
    folder.write("model.safetensors", safetensors_image(changed, DType::kBF16));
    auto engine = Engine::create(open_model(folder.path()), ref_options());
    ASSERT_FALSE(engine.ok()) << tensor;
    EXPECT_THAT(engine.error().message, ::testing::HasSubstr(tensor));
  }
}

TEST(HostileFolder, NoVocabulary) {
  WeightMap weights = read_weights(*open_model(fixture("llama")));
  for (const char* tensor : {"model.embed_tokens.weight", "lm_head.weight"})
    weights[tensor] = {{0, 48}, {}};
  TempFolder folder;
  folder.copy_from(fixture("llama"));
  folder.write("model.safetensors", safetensors_image(weights, DType::kBF16));
  expect_unusable(folder.path(), {"embed_tokens"});
}

TEST(HostileFolder, NoWeightsAtAll) {
  TempFolder folder;
  folder.write("config.json", read_text(fixture("llama") + "/config.json"));
  expect_unusable(folder.path(), {"embed_tokens"});
}

// Weights that are no numbers end in an error about that, not in a token.
TEST(HostileFolder, NotANumber) {
  WeightMap weights = read_weights(*open_model(fixture("llama")));
  weights["model.norm.weight"].values[0] = kNan;
  TempFolder folder;
  folder.copy_from(fixture("llama"));
  folder.write("model.safetensors", safetensors_image(weights, DType::kBF16));
  for (const char* temperature : {"0", "1"})
    expect_refused({"generate", folder.path(), "--ids", "5,6", "--temperature", temperature},
                   {"NaN"});
}

// End tokens that the vocabulary does not have can never be drawn, so they do no harm.
TEST(HostileFolder, EndTokensOutOfRange) {
  TempFolder folder;
  folder.copy_from(fixture("llama"));
  for (const char* eos : {"[2, 4096]", "2147483647"}) {
    folder.write("generation_config.json", fmt::format(R"({{"eos_token_id": {}}})", eos));
    Exit e = vitrine({"generate", folder.path(), "--ids", "5", "--max-tokens", "2"});
    EXPECT_EQ(e.code, 0) << eos << e.err;
  }
  for (const char* eos : {"-1", "\"two\"", "9223372036854775808", "2.5"}) {
    folder.write("generation_config.json", fmt::format(R"({{"eos_token_id": {}}})", eos));
    expect_unusable(folder.path(), {"eos_token_id"});
  }
}

// --- GGUF

struct BadGguf {
  const char* named;
  void (*change)(GgufImage& image);
};

class HostileGguf : public ::testing::TestWithParam<BadGguf> {};

TEST_P(HostileGguf, IsRefusedByName) {
  TempFolder folder;
  folder.copy_from(fixture("llama"));
  GgufImage image = to_gguf(folder.read_json("config.json"),
                            read_weights(*open_model(fixture("llama"))), DType::kBF16);
  GetParam().change(image);
  folder.write("model.gguf", image.build());
  expect_unusable(folder.path("model.gguf"), {GetParam().named});
}

#define VT_KEY(key, value)                                        \
  BadGguf {                                                       \
    key, [](GgufImage& image) { image.add("llama." key, value); } \
  }
#define VT_KEY_NAMED(key, value, named)                             \
  BadGguf {                                                         \
    named, [](GgufImage& image) { image.add("llama." key, value); } \
  }
#define VT_WITHOUT(key)                                       \
  BadGguf {                                                   \
    key, [](GgufImage& image) { image.remove("llama." key); } \
  }

const BadGguf kBadGgufs[] = {
    VT_KEY("block_count", 0u),
    VT_KEY_NAMED("block_count", 3u, "blk.2."),
    VT_KEY_NAMED("block_count", 513u, "blk."),
    VT_KEY("block_count", 1u << 31),
    VT_KEY("block_count", ~0u),
    VT_KEY("block_count", std::int64_t{-1}),
    VT_KEY("block_count", "two"),
    VT_KEY("block_count", 2.0f),
    VT_KEY("block_count", true),
    VT_WITHOUT("block_count"),
    VT_KEY("attention.head_count", 0u),
    VT_KEY("attention.head_count", 1u << 31),
    VT_WITHOUT("attention.head_count"),
    VT_KEY("attention.head_count_kv", 0u),
    VT_KEY_NAMED("attention.head_count_kv", 4u, "kv heads"),
    VT_KEY_NAMED("attention.head_count_kv", 12u, "kv heads"),
    VT_KEY("attention.key_length", 0u),
    VT_KEY_NAMED("attention.key_length", 16u, "value_length"),
    VT_KEY("attention.key_length", 1u << 31),
    VT_KEY("attention.value_length", 4u),
    VT_KEY("rope.dimension_count", 0u),
    VT_KEY_NAMED("rope.dimension_count", 3u, "rope"),
    VT_KEY("rope.dimension_count", 1000u),
    VT_KEY("attention.layer_norm_rms_epsilon", -1e-6f),
    VT_KEY("attention.layer_norm_rms_epsilon", kNan),
    VT_KEY("attention.layer_norm_rms_epsilon", kInfinity),
    VT_WITHOUT("attention.layer_norm_rms_epsilon"),
    VT_KEY("context_length", 0u),
    VT_KEY("context_length", std::int64_t{1} << 40),
    VT_KEY("embedding_length", 0u),
    VT_KEY_NAMED("embedding_length", 96u, "token_embd"),
    VT_KEY("feed_forward_length", 0u),
    VT_KEY_NAMED("feed_forward_length", 41u, "ffn_"),
    VT_KEY("rope.freq_base", 0.0f),
    VT_KEY("rope.freq_base", kNan),
    VT_KEY("rope.scaling.factor", -2.0f),
    VT_KEY("rope.scaling.factor", kNan),
    VT_KEY_NAMED("rope.scaling.type", "spiral", "spiral"),
    VT_KEY("expert_count", 8u),
    VT_KEY("attention.sliding_window", std::int64_t{-1}),
    BadGguf{"general.architecture", [](GgufImage& image) { image.remove("general.architecture"); }},
    BadGguf{"token_embd.weight",
            [](GgufImage& image) {
              image.tensor("token_embd.weight", {{96}, std::vector<float>(96)}, DType::kF32);
            }},
    BadGguf{"output.weight",
            [](GgufImage& image) {
              image.tensor("output.weight", random_weights({95, 48}, 1, 1), DType::kBF16);
            }},
    BadGguf{"blk.1.attn_norm.weight",
            [](GgufImage& image) {
              image.tensor("blk.1.attn_norm.weight", random_weights({47}, 1, 1), DType::kF32);
            }},
    BadGguf{"blk.0.mystery.weight",
            [](GgufImage& image) {
              image.tensor("blk.0.mystery.weight", random_weights({48, 48}, 1, 1), DType::kBF16);
            }},
    BadGguf{"rope_freqs.weight",
            [](GgufImage& image) {
              image.tensor("rope_freqs.weight", {{4}, {1, 1, 0, 1}}, DType::kF32);
            }},
    BadGguf{"rope_freqs.weight",
            [](GgufImage& image) {
              image.tensor("rope_freqs.weight", {{3}, {1, 1, 1}}, DType::kF32);
            }},
};
#undef VT_KEY
#undef VT_KEY_NAMED
#undef VT_WITHOUT
INSTANTIATE_TEST_SUITE_P(All, HostileGguf, ::testing::ValuesIn(kBadGgufs));

TEST(HostileGgufFile, EveryPrefixIsRefused) {
  TempFolder folder;
  folder.copy_from(fixture("llama"));
  Bytes image = to_gguf(folder.read_json("config.json"),
                        read_weights(*open_model(fixture("llama"))), DType::kBF16)
                    .build();
  for (std::size_t size = 0; size < image.size(); size += 1 + size / 8) {
    Bytes prefix(image.begin(), image.begin() + static_cast<std::ptrdiff_t>(size));
    folder.write("model.gguf", prefix);
    expect_refused({"generate", folder.path("model.gguf"), "--ids", "5"}, {"model.gguf"});
  }
}

}  // namespace
}  // namespace vitrine::test
