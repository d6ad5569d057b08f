// A tiny random model and an engine on it, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "engine/engine.h"
#include "nn/test_model.h"

namespace vitrine::test {

inline constexpr int kVocab = 61, kDim = 32, kFfn = 48, kHeads = 4, kKvHeads = 2, kHeadDim = 8,
                     kLayers = 2;
inline constexpr int kContext = 256, kWindow = 20, kEos = 2, kNanToken = 60;

// A random model; token kNanToken poisons whatever it touches.
inline std::shared_ptr<const ModelFile> make_model(bool window) {
  std::mt19937 rng(11);
  std::normal_distribution<float> normal(0, 0.35f);
  std::vector<TestTensor> tensors;
  auto add = [&](const std::string& name, std::vector<std::int64_t> shape, bool norm = false) {
    std::int64_t n = 1;
    for (std::int64_t d : shape) n *= d;
    std::vector<float> values(n);
    for (float& v : values) v = norm ? 1.0f : normal(rng);
    tensors.push_back({name, std::move(shape), std::move(values)});
  };
  add("model.embed_tokens.weight", {kVocab, kDim});
  for (int e = 0; e < kDim; ++e) tensors[0].values[kNanToken * kDim + e] = NAN;
  for (int l = 0; l < kLayers; ++l) {
    std::string p = fmt::format("model.layers.{}.", l);
    add(p + "input_layernorm.weight", {kDim}, true);
    add(p + "post_attention_layernorm.weight", {kDim}, true);
    add(p + "self_attn.q_proj.weight", {kHeads * kHeadDim, kDim});
    add(p + "self_attn.k_proj.weight", {kKvHeads * kHeadDim, kDim});
    add(p + "self_attn.v_proj.weight", {kKvHeads * kHeadDim, kDim});
    add(p + "self_attn.o_proj.weight", {kDim, kHeads * kHeadDim});
    add(p + "mlp.gate_proj.weight", {kFfn, kDim});
    add(p + "mlp.up_proj.weight", {kFfn, kDim});
    add(p + "mlp.down_proj.weight", {kDim, kFfn});
  }
  add("model.norm.weight", {kDim}, true);
  add("lm_head.weight", {kVocab, kDim});
  std::string config = fmt::format(
      R"({{"architectures":["{}"],"hidden_size":{},"intermediate_size":{},"num_hidden_layers":{},)"
      R"("num_attention_heads":{},"num_key_value_heads":{},"head_dim":{},"max_position_embeddings":{},)"
      R"("rms_norm_eps":1e-5,"hidden_act":"silu","vocab_size":{},"eos_token_id":{}{}}})",
      window ? "MistralForCausalLM" : "LlamaForCausalLM", kDim, kFfn, kLayers, kHeads, kKvHeads,
      kHeadDim, kContext, kVocab, kEos,
      window ? fmt::format(",\"sliding_window\":{}", kWindow) : "");
  return hf_model(config, tensors);
}

inline const std::shared_ptr<const ModelFile>& model(bool window) {
  static const std::shared_ptr<const ModelFile> kModels[2] = {make_model(false), make_model(true)};
  return kModels[window];
}

inline EngineOptions options(int sequences = 1) {
  EngineOptions o;
  // The same tests on another backend: one that promises the same bits in every batch.
  const char* backend = std::getenv("VITRINE_TEST_BACKEND");
  o.backend = backend != nullptr ? backend : "cpu";
  o.deterministic = true;
  o.commit_delay = 0;
  o.threads = 2;
  o.sequences = sequences;
  o.page_size = 16;
  return o;
}

inline std::unique_ptr<Engine> make_engine(const EngineOptions& o, bool window = false) {
  auto engine = Engine::create(model(window), o);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  return std::move(engine).value();
}

inline Request request(int seed, int length, int max_tokens, double temperature = 1) {
  Request r;
  std::mt19937 rng(seed);
  for (int i = 0; i < length; ++i) r.prompt.push_back(3 + static_cast<int>(rng() % (kVocab - 4)));
  r.max_tokens = max_tokens;
  r.ignore_eos = true;
  EXPECT_TRUE(r.sampling.set("temperature", temperature).ok());
  EXPECT_TRUE(r.sampling.set_logit_bias({{kNanToken, -100}}).ok());
  r.sampling.set_seed(seed);
  return r;
}

inline std::vector<std::int32_t> tokens_of(TokenStream& stream) {
  std::vector<std::int32_t> tokens;
  while (auto event = stream.next()) tokens.push_back(event->token);
  return tokens;
}

// Steps until nothing is left, checking the books after every step.
inline void drain(Engine& engine) {
  for (int i = 0; i < 100000 && engine.step(); ++i) engine.check_integrity();
  for (int used : engine.pages_used()) EXPECT_EQ(used, 0);
}

}  // namespace vitrine::test
