// A tiny random model and an engine on it, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "engine/engine.h"
#include "nn/test_llama.h"

namespace vitrine::test {

inline constexpr int kVocab = 61, kContext = 256, kWindow = 20, kEos = 2, kNanToken = kVocab - 1,
                     kDim = TinyLlama::dim;

inline const std::shared_ptr<const ModelFile>& model(bool window) {
  auto make = [](int size) {
    return make_tiny_llama({.vocab = kVocab,
                            .context = kContext,
                            .eos = kEos,
                            .kv_heads = 2,
                            .window = size,
                            .seed = 11});
  };
  static const std::shared_ptr<const ModelFile> kModels[2] = {make(0), make(kWindow)};
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
