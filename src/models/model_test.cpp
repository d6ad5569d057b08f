#include "models/model.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "kernels/backend.h"
#include "nn/test_model.h"

namespace vitrine {
namespace {

using test::GgufModel;
using test::hf_model;
using test::TestTensor;
using testing::HasSubstr;

std::string error_of(const ModelFile& file) {
  auto backend = create_backend("ref", {}).value();
  auto model = load_model(file, *backend, {.max_tokens = 4, .context = 0, .progress = {}});
  return model.ok() ? "none" : model.error().message;
}

// The settings of a model of one layer with the usual names, and more.
std::string error_of(const std::string& architecture, const std::string& more,
                     const std::string& embedding = "model.embed_tokens.weight") {
  std::string config = R"({"architectures": [")" + architecture + R"("], "num_hidden_layers": 1,
      "hidden_size": 4, "num_attention_heads": 2, "intermediate_size": 8, "rms_norm_eps": 1e-6,
      "max_position_embeddings": 8, )" +
                       more + "}";
  return error_of(*hf_model(config, {{embedding, {6, 4}}}));
}

TEST(Models, UnknownArchitecturesAreNamedWithTheKnownOnes) {
  std::string hf = error_of(*hf_model(R"({"architectures": ["FooForCausalLM"]})"));
  EXPECT_THAT(hf, HasSubstr("'FooForCausalLM' is not known"));
  std::string gguf = error_of(*GgufModel().open());
  EXPECT_THAT(gguf, HasSubstr("'test' is not known"));
  for (const Arch* arch : all_archs()) {
    for (const std::string& name : arch->hf) EXPECT_THAT(hf, HasSubstr(name));
    for (const std::string& name : arch->gguf) EXPECT_THAT(gguf, HasSubstr(name));
  }
  EXPECT_THAT(error_of(*hf_model("{}")), HasSubstr("names no architecture"));
}

TEST(Models, EveryArchitectureHasNamesAndNoneTwice) {
  std::vector<std::string> seen;
  for (const Arch* arch : all_archs()) {
    EXPECT_FALSE(arch->hf.empty()) << arch->name;
    for (const auto* names : {&arch->hf, &arch->gguf})
      for (const std::string& name : *names) {
        EXPECT_EQ(std::count(seen.begin(), seen.end(), name), 0) << name;
        seen.push_back(name);
      }
  }
}

TEST(Models, WhatIsNotComputedIsRefusedByName) {
  EXPECT_THAT(error_of("LlamaForCausalLM", R"("hidden_act": "xielu")"), HasSubstr("'xielu'"));
  EXPECT_THAT(error_of("Gemma2ForCausalLM", R"("use_bidirectional_attention": true)"),
              HasSubstr("use_bidirectional_attention: found true"));
  EXPECT_THAT(error_of("Olmo2ForCausalLM", R"("sliding_window": 16)"),
              HasSubstr("sliding_window: found 16"));
  EXPECT_THAT(error_of("OPTForCausalLM", R"("ffn_dim": 8, "word_embed_proj_dim": 2)",
                       "model.decoder.embed_tokens.weight"),
              HasSubstr("word_embed_proj_dim: found 2"));
  EXPECT_THAT(error_of("Qwen2ForCausalLM", R"("layer_types": ["linear_attention"])"),
              HasSubstr("'linear_attention'"));
}

TEST(Models, ComputedPositionTablesAreBounded) {
  auto file = hf_model(R"({"architectures": ["XGLMForCausalLM"], "num_layers": 1, "d_model": 4,
      "attention_heads": 2, "ffn_dim": 8, "max_position_embeddings": 200000000})",
                       {{"model.embed_tokens.weight", {6, 4}}});
  EXPECT_THAT(error_of(*file), HasSubstr("max_position_embeddings: found 200000000, at most"));
}

std::vector<TestTensor> tiny_gpt2(const std::string& prefix) {
  return {{prefix + "wte.weight", {6, 4}},
          {prefix + "wpe.weight", {8, 4}},
          {prefix + "h.0.ln_1.weight", {4}},
          {prefix + "h.0.ln_2.weight", {4}},
          {prefix + "h.0.attn.c_attn.weight", {4, 12}},
          {prefix + "h.0.attn.bias", {1, 1, 8, 8}},
          {prefix + "h.0.attn.c_proj.weight", {4, 4}},
          {prefix + "h.0.mlp.c_fc.weight", {4, 16}},
          {prefix + "h.0.mlp.c_proj.weight", {16, 4}},
          {prefix + "ln_f.weight", {4}}};
}

std::string error_of_gpt2(const std::string& more, const std::vector<TestTensor>& tensors) {
  return error_of(*hf_model(R"({"architectures": ["GPT2LMHeadModel"], "n_layer": 1, "n_embd": 4,
      "n_head": 2, "n_inner": null, "layer_norm_epsilon": 1e-5)" +
                                more + "}",
                            tensors));
}

TEST(Models, Gpt2LoadsWithAndWithoutPrefixAndInOlderSpelling) {
  EXPECT_EQ(error_of_gpt2(R"(, "n_positions": 8)", tiny_gpt2("transformer.")), "none");
  EXPECT_EQ(error_of_gpt2(R"(, "n_ctx": 8)", tiny_gpt2("")), "none");
}

TEST(Models, Gpt2Refusals) {
  const std::string size = R"(, "n_positions": 8)";
  EXPECT_THAT(error_of_gpt2(size + R"(, "scale_attn_by_inverse_layer_idx": true)",
                            tiny_gpt2("transformer.")),
              HasSubstr("scale_attn_by_inverse_layer_idx: found true, only false"));
  auto more = tiny_gpt2("transformer.");
  more.push_back({"transformer.h.0.crossattention.q_attn.weight", {4, 4}});
  EXPECT_THAT(error_of_gpt2(size, more), HasSubstr("crossattention.q_attn.weight' has no place"));
  auto fewer = tiny_gpt2("transformer.");
  fewer.pop_back();
  EXPECT_THAT(error_of_gpt2(size, fewer), HasSubstr("'transformer.ln_f.weight' is missing"));
  EXPECT_THAT(error_of_gpt2(R"(, "n_positions": 9)", tiny_gpt2("transformer.")),
              HasSubstr("wpe.weight' has shape [8, 4], the configuration needs [9, 4]"));
}

}  // namespace
}  // namespace vitrine
