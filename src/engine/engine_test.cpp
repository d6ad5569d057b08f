#include "engine/engine.h"

#include <gtest/gtest.h>

#include <cstring>

#include "engine/test_engine.h"

namespace vitrine {
namespace {

using namespace test;

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

TEST(Engine, RecordsTellTheTimeOfOpsWhileTheyAreTimed) {
  auto engine = make_engine(options(2));
  auto steps = [&](int seed) {
    auto before = engine->steps_since(0);
    const std::uint64_t first = before.empty() ? 0 : before.back().step + 1;
    auto stream = *engine->submit(request(seed, 30, 5));
    drain(*engine);
    std::vector<StepRecord> records;
    for (const StepRecord& r : engine->steps_since(0))
      if (r.step >= first) records.push_back(r);
    return records;
  };
  engine->time_ops(true);
  auto timed = steps(1);
  EXPECT_GE(timed.size(), 5u);
  for (const StepRecord& r : timed) {
    double seconds = 0;
    int attention = 0;
    for (const OpTime& t : r.ops) {
      EXPECT_GT(t.seconds, 0) << t.op;
      seconds += t.seconds;
      if (std::string_view(t.op) == "attend") attention += static_cast<int>(t.calls);
    }
    EXPECT_EQ(attention, engine->info().layers);
    EXPECT_LE(seconds, 1e-9 * static_cast<double>(r.forward_ns + r.sample_ns));
  }
  engine->time_ops(false);
  for (const StepRecord& r : steps(2)) EXPECT_TRUE(r.ops.empty());
}

TEST(Engine, RecordsTellWhatEveryStepDid) {
  auto engine = make_engine(options(2));
  auto a = *engine->submit(request(1, 30, 5));
  auto b = *engine->submit(request(2, 50, 9));
  drain(*engine);
  int prefill = 0, decode = 0, sampled = 0;
  for (const StepRecord& r : engine->steps_since(0)) {
    int tokens = 0;
    for (const StepEntry& e : r.entries) tokens += e.tokens, sampled += e.sampled;
    EXPECT_EQ(tokens, r.prefill_tokens + r.decode_tokens);
    EXPECT_GT(r.forward_ns, 0);
    EXPECT_GT(r.flops, 2.0 * engine->info().matmul_weights * tokens);
    EXPECT_EQ(r.weight_bytes, engine->info().matmul_bytes + engine->info().head_bytes);
    EXPECT_EQ(r.kv_write_bytes, tokens * engine->memory().kv_bytes_per_token);
    EXPECT_GE(r.kv_read_bytes, r.kv_write_bytes);
    prefill += r.prefill_tokens, decode += r.decode_tokens;
  }
  EXPECT_EQ(prefill, 80);
  EXPECT_EQ(sampled, 14);
  EXPECT_EQ(decode, 14 - 2);
  const Finish& f = b->wait();
  EXPECT_EQ(f.account.usage.prompt_tokens, 50);
  EXPECT_EQ(f.account.usage.completion_tokens, 9);
  EXPECT_EQ(f.account.timings.decode_steps, 8);
  EXPECT_GT(f.account.timings.ttft_ms, 0);
  EXPECT_GT(f.account.timings.prefill_tok_s, 0);
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
  ASSERT_TRUE(engine->start().ok());
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
