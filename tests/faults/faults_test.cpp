// What a server does when the machine does not give what it is asked for. In the manner of SQLite:
// the Nth call fails, for N = 1, 2, 3, ... until a request needs no further one. Each time the
// process lives, the request is answered or told, the next one gets the right tokens, and no page is
// lost. VITRINE_FAULT_STRIDE=N takes every Nth call only.
#include "base/mapped_file.h"
#include "faults/faulty_server.h"

namespace vitrine {
namespace {

using namespace test;

TEST_F(Faults, MemoryForACompletion) { step_through_memory(kPlain); }

// More failures than the threads of sockets have reserves for: who asked may lose the connection.
TEST_F(Faults, MemoryThatStaysAway) {
  for (const std::string& request :
       {kPlain,
        post("/v1/completions", R"({"prompt":"abc","max_tokens":8,"stream":true,"logprobs":2})"),
        post("/v1/embeddings", R"({"input":["abc","x"]})")})
    if (!HasFatalFailure()) step_through(Fault::kAllocation, request, 300, true);
}

// The time of day jumps by years with every look at it; what waits and what ends goes by another clock.
TEST_F(Faults, AClockThatJumps) {
  const std::string hours = post(
      "/v1/completions", R"({"prompt":"abc abc","max_tokens":6,"temperature":0,"timeout":3600})");
  plan_fault(Fault::kClock, 1, 1'000'000);
  for (int i = 0; i < 20; ++i) {
    Response got = ask(hours);
    ASSERT_EQ(got.status, 200) << got.body;
    ASSERT_EQ(essence(got.body), plain);
    ASSERT_EQ(ask(get("/metrics")).status, 200);
  }
  EXPECT_GT(end_fault(Fault::kClock), 20);
  expect_well("a clock that jumps");
}

TEST_F(Faults, MemoryForManyChoicesWithLogprobs) {
  step_through_memory(post(
      "/v1/completions", R"({"prompt":"abcdefgh","max_tokens":5,"n":8,"logprobs":5,"echo":true})"));
}

TEST_F(Faults, MemoryForAStream) {
  step_through_memory(post("/v1/completions",
                           R"({"prompt":"abc","max_tokens":8,"stream":true,
                               "stream_options":{"include_usage":true}})"));
}

TEST_F(Faults, MemoryForAConstraint) {
  step_through_memory(
      post("/v1/completions", R"({"prompt":"abc","max_tokens":8,"regex":"[a-c]{2,5}(x|yz)*"})"));
}

TEST_F(Faults, MemoryForAChatWithTools) {
  step_through_memory(post("/v1/chat/completions", R"({"max_tokens":8,
      "messages":[{"role":"user","content":"hello"}],
      "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object",
        "properties":{"a":{"type":"string"}},"required":["a"]}}}]})"));
}

// A draft model guesses every token, with a copy of the constraint that is ahead.
class DraftFaults : public Faults {
 protected:
  static EngineOptions options() {
    EngineOptions out = engine_options();
    out.spec = SpecMode::kDraft, out.spec_always = true;
    out.draft.file = tiny_model();
    return out;
  }
  DraftFaults() : Faults(options()) {}
};

TEST_F(DraftFaults, MemoryForGuesses) {
  step_through_memory(
      post("/v1/completions",
           R"({"prompt":"abcdefgh","max_tokens":12,"n":3,"seed":3,"temperature":0.8})"),
      false, 3);
  if (!HasFatalFailure())
    step_through_memory(
        post("/v1/completions", R"({"prompt":"abc","max_tokens":8,"regex":"[a-c]{2,5}(x|yz)*"})"),
        true, 3);
  EXPECT_GT(engine->metrics().drafted_tokens, 100u);
}

TEST_F(DraftFaults, MemoryForAPrediction) {
  step_through_memory(post("/v1/completions",
                           R"({"prompt":"abc","max_tokens":8,
                               "prediction":{"type":"content","content":"abcabcabc"}})"));
}

TEST_F(Faults, MemoryForEmbeddings) {
  step_through_memory(post("/v1/embeddings", R"({"input":["abc","hello there","x"]})"));
}

TEST_F(Faults, MemoryForWhatNeedsNoEngine) {
  for (const std::string& request :
       {post("/tokenize", R"({"content":"abc abc","with_pieces":true})"),
        post("/detokenize", R"({"tokens":[5,6,7]})"),
        post("/apply-template", R"({"messages":[{"role":"user","content":"hello"}]})"),
        post("/apply-template", R"({"messages":[{"role":"nobody","content":"hello"}]})"),
        post("/v1/completions", R"({"prompt":)"), get("/nowhere"), get("/v1/models")})
    if (!HasFatalFailure()) step_through_memory(request);
}

TEST_F(Faults, MemoryForWhatTheEngineTells) {
  for (const char* path : {"/metrics", "/api/snapshot"})
    if (!HasFatalFailure()) step_through_memory(get(path), false);
  // All requests that were answered so far, with a thousand times as many allocations.
  if (!HasFatalFailure()) step_through_memory(get("/api/requests"), false, 101);
}

TEST_F(Faults, SocketsThatFail) {
  const std::string stream =
      post("/v1/completions", R"({"prompt":"abc","max_tokens":8,"stream":true})");
  for (Fault kind : {Fault::kRead, Fault::kWrite, Fault::kAccept})
    for (const std::string& request : {kPlain, stream})
      for (long count : {1, 3})
        if (!HasFatalFailure()) step_through(kind, request, count, true);
}

// ---- at the start: an error with words, not an abort

TEST(FaultsAtStart, ThreadsOfTheEngine) {
  EngineOptions options = engine_options();
  options.threads = 4;
  long n = 1;
  for (;; ++n) {
    plan_fault(Fault::kThread, n);
    auto engine = Engine::create(tiny_model(), options);
    Status started = engine.ok() ? (*engine)->start() : Status(engine.error());
    if (end_fault(Fault::kThread) == 0) break;
    ASSERT_FALSE(started.ok());
    EXPECT_NE(started.error().message.find("thread"), std::string::npos) << started.error().message;
  }
  EXPECT_EQ(n, 5);  // three that compute beside the engine's own
}

TEST(FaultsAtStart, ThreadsOfTheServer) {
  HttpOptions options;
  options.port = 0, options.worker_threads = 2, options.io_threads = 2;
  for (long n = 1; n <= 3; ++n) {
    auto server = HttpServer::create(options, {});
    ASSERT_TRUE(server.ok());
    plan_fault(Fault::kThread, n);
    Status status = (*server)->run();
    ASSERT_EQ(end_fault(Fault::kThread), 1);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("threads"), std::string::npos);
  }
}

TEST(FaultsAtStart, MemoryOfTheEngine) {
  const auto model = tiny_model();
  long n = 1;
  for (;; n += stride()) {
    plan_fault(Fault::kAllocation, n);
    const bool ok = Engine::create(model, engine_options()).ok();
    if (end_fault(Fault::kAllocation) == 0) {
      EXPECT_TRUE(ok);
      break;
    }
  }
  EXPECT_GT(n, 100);
}

TEST(FaultsAtStart, MemoryOfADraftModel) {
  const auto model = tiny_model();
  EngineOptions options = engine_options();
  options.spec = SpecMode::kDraft, options.draft.file = model;
  long n = 1;
  for (;; n += 5 * stride()) {
    plan_fault(Fault::kAllocation, n);
    const bool ok = Engine::create(model, options).ok();
    if (end_fault(Fault::kAllocation) == 0) {
      EXPECT_TRUE(ok);
      break;
    }
  }
  EXPECT_GT(n, 200);
}

TEST(FaultsAtStart, AFileThatCannotBeMapped) {
  plan_fault(Fault::kMap, 1);
  auto file = MappedFile::open("/proc/self/exe");
  ASSERT_EQ(end_fault(Fault::kMap), 1);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("cannot map"), std::string::npos) << file.error().message;
}

}  // namespace
}  // namespace vitrine
