#include "engine/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "nn/test_model.h"

namespace vitrine {
namespace {

constexpr int kVocab = 61, kDim = 32, kFfn = 48, kHeads = 4, kKvHeads = 2, kHeadDim = 8,
              kLayers = 2;
constexpr int kContext = 256, kWindow = 20, kEos = 2, kNanToken = 60;

// A random model; token kNanToken poisons whatever it touches.
std::shared_ptr<const ModelFile> make_model(bool window) {
  std::mt19937 rng(11);
  std::normal_distribution<float> normal(0, 0.35f);
  std::vector<test::TestTensor> tensors;
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
  return test::hf_model(config, tensors);
}

const std::shared_ptr<const ModelFile>& model(bool window) {
  static const std::shared_ptr<const ModelFile> kModels[2] = {make_model(false), make_model(true)};
  return kModels[window];
}

EngineOptions options(int sequences = 1) {
  EngineOptions o;
  o.backend = "cpu";
  o.threads = 2;
  o.sequences = sequences;
  o.page_size = 16;
  return o;
}

std::unique_ptr<Engine> make_engine(const EngineOptions& o, bool window = false) {
  auto engine = Engine::create(model(window), o);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  return std::move(engine).value();
}

Request request(int seed, int length, int max_tokens, double temperature = 1) {
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

std::vector<std::int32_t> tokens_of(TokenStream& stream) {
  std::vector<std::int32_t> tokens;
  while (auto event = stream.next()) tokens.push_back(event->token);
  return tokens;
}

// Steps until nothing is left, checking the books after every step.
void drain(Engine& engine) {
  for (int i = 0; i < 100000 && engine.step(); ++i) engine.check_integrity();
  for (int used : engine.pages_used()) EXPECT_EQ(used, 0);
}

std::vector<Request> mixed_requests(int n) {
  std::vector<Request> out;
  for (int i = 0; i < n; ++i) {
    out.push_back(request(100 + i, 1 + i * 13 % 90, 5 + i * 7 % 40, i % 3 ? 1.0 : 0.0));
    const char* name = i % 4 == 1 ? "repetition_penalty" : "top_p";
    EXPECT_TRUE(out.back().sampling.set(name, i % 4 == 1 ? 1.3 : 0.8).ok());
  }
  return out;
}

std::vector<std::vector<std::int32_t>> run_all(const EngineOptions& o, bool window,
                                               const std::vector<Request>& requests) {
  auto engine = make_engine(o, window);
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (const Request& r : requests) streams.push_back(*engine->submit(r));
  drain(*engine);
  std::vector<std::vector<std::int32_t>> out;
  for (auto& s : streams) out.push_back(tokens_of(*s));
  return out;
}

TEST(Engine, SixteenSequencesTogetherGiveTheTokensOfEachAlone) {
  auto requests = mixed_requests(16);
  for (bool window : {false, true}) {
    std::vector<std::vector<std::int32_t>> alone;
    for (const Request& r : requests) alone.push_back(run_all(options(), window, {r})[0]);
    for (int delay : {0, 1})
      for (int step_tokens : {512, 24})
        for (int threads : {1, 3}) {
          EngineOptions o = options(16);
          o.commit_delay = delay, o.step_tokens = step_tokens, o.threads = threads;
          EXPECT_EQ(run_all(o, window, requests), alone)
              << "window " << window << " delay " << delay << " step " << step_tokens;
        }
  }
}

TEST(Engine, MoreRequestsThanPlacesAllFinish) {
  auto requests = mixed_requests(20);
  EngineOptions wide = options(20), narrow = options(3);
  EXPECT_EQ(run_all(narrow, false, requests), run_all(wide, false, requests));
}

TEST(Engine, ChunksOfAnySizeGiveTheSameBits) {
  for (bool window : {false, true})
    for (DType kv : {DType::kF32, DType::kF16, DType::kBF16}) {
      std::vector<std::map<int, std::vector<float>>> logits;
      for (int chunk : {512, 1, 7, 33}) {
        EngineOptions o = options();
        o.step_tokens = chunk, o.kv_dtype = kv;
        auto engine = make_engine(o, window);
        Request r = request(5, 150, 0);
        for (int p = 0; p < 150; ++p) r.logit_positions.push_back(p);
        auto stream = *engine->submit(r);
        drain(*engine);
        logits.push_back(stream->logits());
        ASSERT_EQ(logits.back().size(), 150u);
        for (int p = 0; p < 150; ++p)
          ASSERT_EQ(std::memcmp(logits[0].at(p).data(), logits.back().at(p).data(), kVocab * 4), 0)
              << "chunk " << chunk << " position " << p;
      }
    }
}

TEST(Engine, RefAndCpuAgree) {
  for (bool window : {false, true}) {
    std::vector<std::map<int, std::vector<float>>> logits;
    for (const char* backend : {"ref", "cpu"}) {
      EngineOptions o = options();
      o.backend = backend, o.kv_dtype = DType::kF32;
      auto engine = make_engine(o, window);
      Request r = request(6, 60, 0);
      r.logit_positions = {0, 30, 59};
      auto stream = *engine->submit(r);
      drain(*engine);
      logits.push_back(stream->logits());
    }
    for (int p : {0, 30, 59})
      for (int v = 0; v < kVocab; ++v) ASSERT_NEAR(logits[0].at(p)[v], logits[1].at(p)[v], 1e-3);
  }
}

TEST(Engine, ACommitOneStepLateChangesNothing) {
  // With end tokens in play: the step that was already planned is dropped.
  std::vector<Request> requests = mixed_requests(12);
  for (Request& r : requests) r.ignore_eos = false, r.max_tokens = 60;
  for (bool window : {false, true}) {
    EngineOptions plain = options(5), late = options(5);
    late.commit_delay = 1;
    auto expected = run_all(plain, window, requests);
    EXPECT_EQ(run_all(late, window, requests), expected);
    int stopped = 0;
    for (auto& tokens : expected) stopped += tokens.size() < 60;
    EXPECT_GT(stopped, 0) << "no sequence met an end token: the test shows nothing";
  }
}

TEST(Engine, TheContextIsAHardLimit) {
  auto engine = make_engine(options());
  auto refused = engine->submit(request(1, kContext, 5));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("256 tokens"), std::string::npos)
      << refused.error().message;
  EXPECT_NE(refused.error().message.find("holds 256"), std::string::npos)
      << refused.error().message;
  Request r = request(1, kContext - 3, 100);
  r.max_tokens.reset();
  auto stream = *engine->submit(r);
  drain(*engine);
  EXPECT_EQ(tokens_of(*stream).size(), 3u);
  EXPECT_EQ(stream->wait().reason, FinishReason::kLength);
  EngineOptions o = options();
  o.context = kContext + 1;
  auto too_long = Engine::create(model(false), o);
  ASSERT_FALSE(too_long.ok());
  EXPECT_NE(too_long.error().message.find("257"), std::string::npos);
}

TEST(Engine, RefusesBadRequests) {
  auto engine = make_engine(options());
  auto refused = [&](Request r) {
    auto stream = engine->submit(std::move(r));
    return stream.ok() ? std::string("accepted") : stream.error().message;
  };
  Request r = request(1, 4, 4);
  r.prompt.clear();
  EXPECT_NE(refused(r).find("empty"), std::string::npos);
  for (std::int32_t bad : {-1, kVocab, 2147483647}) {
    r = request(1, 4, 4);
    r.prompt[2] = bad;
    EXPECT_NE(refused(r).find(std::to_string(bad)), std::string::npos);
  }
  r = request(1, 4, -1);
  EXPECT_NE(refused(r).find("max_tokens"), std::string::npos);
  r = request(1, 4, 4);
  r.logit_positions = {4};
  EXPECT_NE(refused(r).find("position 4"), std::string::npos);
  EXPECT_FALSE(engine->step());
}

TEST(Engine, NanLogitsEndOnlyTheirOwnRequest) {
  auto expected = run_all(options(), false, {request(3, 20, 30)})[0];
  auto engine = make_engine(options(3));
  Request poisoned = request(2, 10, 30);
  poisoned.prompt[5] = kNanToken;
  auto bad = *engine->submit(poisoned);
  auto good = *engine->submit(request(3, 20, 30));
  drain(*engine);
  EXPECT_EQ(bad->wait().reason, FinishReason::kError);
  EXPECT_NE(bad->wait().error.find("position 10"), std::string::npos) << bad->wait().error;
  EXPECT_EQ(tokens_of(*good), expected);
  // The poisoned pages are reused: nobody may read what was in them.
  auto again = *engine->submit(request(3, 20, 30));
  drain(*engine);
  EXPECT_EQ(tokens_of(*again), expected);
}

TEST(Engine, CancellationFreesEverything) {
  std::mt19937 rng(4);
  for (int delay : {0, 1}) {
    EngineOptions o = options(4);
    o.commit_delay = delay, o.step_tokens = 16;
    auto engine = make_engine(o, true);
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (int i = 0; i < 30; ++i) streams.push_back(*engine->submit(request(i, 1 + i * 5, 40)));
    for (int i = 0; i < 400; ++i) {
      streams[rng() % streams.size()]->cancel();
      if (!engine->step()) break;
      engine->check_integrity();
    }
    drain(*engine);
    int cancelled = 0;
    for (auto& s : streams) cancelled += s->wait().reason == FinishReason::kCancelled;
    EXPECT_GT(cancelled, 0);
  }
}

TEST(Engine, RecordsTellWhatEveryStepDid) {
  auto engine = make_engine(options(2));
  auto a = *engine->submit(request(1, 30, 5));
  auto b = *engine->submit(request(2, 50, 9));
  drain(*engine);
  int prefill = 0, decode = 0, sampled = 0;
  for (const StepRecord& r : engine->records()) {
    int tokens = 0;
    for (const StepEntry& e : r.entries) tokens += e.tokens, sampled += e.sampled;
    EXPECT_EQ(tokens, r.prefill_tokens + r.decode_tokens);
    EXPECT_GT(r.forward_ns, 0);
    EXPECT_GT(r.flops, 2.0 * engine->weights().matmul_weights * tokens);
    EXPECT_EQ(r.weight_bytes, engine->weights().matmul_bytes + engine->weights().head_bytes);
    EXPECT_EQ(r.kv_write_bytes, tokens * engine->memory().kv_bytes_per_token);
    EXPECT_GE(r.kv_read_bytes, r.kv_write_bytes);
    prefill += r.prefill_tokens, decode += r.decode_tokens;
  }
  EXPECT_EQ(prefill, 80);
  EXPECT_EQ(sampled, 14);
  EXPECT_EQ(decode, 14 - 2);
  const Finish& f = b->wait();
  EXPECT_EQ(f.usage.prompt_tokens, 50);
  EXPECT_EQ(f.usage.completion_tokens, 9);
  EXPECT_EQ(f.timings.decode_steps, 8);
  EXPECT_GT(f.timings.ttft_ms, 0);
  EXPECT_GT(f.timings.prefill_tok_s, 0);
}

TEST(Engine, SeedsAreDrawnReportedAndRepeatable) {
  auto engine = make_engine(options());
  auto generate = [&](std::optional<std::uint64_t> seed) {
    Request r;
    r.prompt = {5, 6, 7};
    r.max_tokens = 30;
    r.ignore_eos = true;
    if (seed) r.sampling.set_seed(*seed);
    auto stream = *engine->submit(r);
    drain(*engine);
    return std::pair(tokens_of(*stream), stream->wait().seed);
  };
  auto [tokens, seed] = generate({});
  auto [again, same] = generate(seed);
  EXPECT_EQ(tokens, again);
  EXPECT_EQ(seed, same);
  EXPECT_NE(generate({}).second, seed);
}

TEST(Engine, TheThreadServesManyClients) {
  auto requests = mixed_requests(12);
  std::vector<std::vector<std::int32_t>> alone;
  for (const Request& r : requests) alone.push_back(run_all(options(), false, {r})[0]);
  auto engine = make_engine(options(4));
  engine->start();
  std::vector<std::thread> clients;
  std::vector<std::vector<std::int32_t>> found(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i)
    clients.emplace_back([&, i] { found[i] = tokens_of(**engine->submit(requests[i])); });
  for (std::thread& t : clients) t.join();
  EXPECT_EQ(found, alone);
  // Closing the engine ends what still runs.
  auto left = *engine->submit(request(9, 10, 200));
  engine.reset();
  left->wait();
}

TEST(Engine, AWindowGroupHoldsOnlyItsWindow) {
  EngineOptions o = options(2);
  o.step_tokens = 16;
  auto windowed = make_engine(o, true), full = make_engine(o, false);
  EXPECT_LT(windowed->memory().kv_bytes, full->memory().kv_bytes / 2);
  auto stream = *windowed->submit(request(1, 100, 100));
  int most = 0;
  while (windowed->step()) most = std::max(most, windowed->pages_used()[0]);
  EXPECT_LE(most, windowed->memory().groups[0].pages_per_sequence);
  EXPECT_EQ(tokens_of(*stream).size(), 100u);
}

}  // namespace
}  // namespace vitrine
