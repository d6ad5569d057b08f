// What a server does when the machine does not give what it is asked for. In the manner of SQLite:
// the Nth call fails, for N = 1, 2, 3, ... until a request needs no further one. Each time the
// process lives, the request is answered or told, the next one gets the right tokens, and no page is
// lost. VITRINE_FAULT_STRIDE=N takes every Nth call only.
#include <regex>

#include "base/mapped_file.h"
#include "server/api_testing.h"
#include "server/http/test_client.h"
#include "support/faults.h"

namespace vitrine {
namespace {

using namespace test;

long stride() {
  const char* text = std::getenv("VITRINE_FAULT_STRIDE");
  return text != nullptr ? std::max(1L, std::atol(text)) : 1;
}

EngineOptions engine_options() {
  EngineOptions options;
  options.backend = "cpu", options.threads = 1, options.sequences = 8, options.page_size = 16;
  options.context = 256;
  return options;
}

// A whole server on sockets; the test's own thread does not fail.
class Faults : public ::testing::Test {
 protected:
  Faults() {
    auto made = Engine::create(tiny_model(), engine_options());
    EXPECT_TRUE(made.ok()) << made.error().message;
    engine = std::move(*made);
    api.model_name = "tiny";
    api.tokenizer = tokenizer.get();
    api.chat = chat.get();
    EXPECT_TRUE(api.defaults.set("temperature", 0).ok());
    EXPECT_TRUE(api.defaults.set_logit_bias({{kNanToken, -100}}).ok());
    api.attach(*engine);
    EXPECT_TRUE(engine->start().ok());
    HttpOptions http;
    http.port = 0;
    auto server_made = HttpServer::create(http, api_service(api));
    EXPECT_TRUE(server_made.ok());
    server = std::move(*server_made);
    thread = std::thread([this] { EXPECT_TRUE(server->run().ok()); });
    Response first = ask(kPlain);
    EXPECT_EQ(first.status, 200) << first.body;
    plain = essence(first.body);
  }
  ~Faults() override {
    server->stop_accepting();
    thread.join();
    server.reset();
  }

  Response ask(const std::string& request) { return vitrine::ask(server->port(), request); }
  // What an answer says, without what differs from one to the next: generated text is compared alone,
  // since frames and cached tokens may differ.
  static std::string essence(const std::string& body) {
    static const std::regex kVaries(R"re("(id|created)":("[^"]*"|\d+))re");
    static const std::regex kText(R"re("(text|content)":"(([^"\\]|\\.)*)")re");
    if (body.find("\"choices\":") == body.npos) return std::regex_replace(body, kVaries, "");
    std::string text;
    for (std::sregex_iterator it(body.begin(), body.end(), kText), end; it != end; ++it)
      text += (*it)[2].str();
    return text;
  }
  bool idle() {
    Snapshot s = engine->snapshot();
    return s.running.empty() && s.waiting.empty() && api.live.size() == 0 &&
           server->counts().answer_bytes == 0 && engine->pages_used() == std::vector<int>{0};
  }
  // After a fault: nothing is left of it.
  void expect_well(const std::string& what) {
    ASSERT_TRUE(eventually([this] { return idle(); })) << what;
    engine->check_integrity();
    Response after = ask(kPlain);
    ASSERT_EQ(after.status, 200) << what << after.body;
    ASSERT_EQ(essence(after.body), plain) << what;
  }
  // Goes through the calls of `kind` that the request makes, or every `step`th of them.
  void step_through(Fault kind, const std::string& request, long count, bool same_each_time,
                    long step = 1) {
    const Response expected = ask(request);
    const std::string good = essence(expected.body);
    long tried = 0, refused = 0;
    for (long n = 1;; n += kind == Fault::kAllocation ? stride() * step : 1, ++tried) {
      const std::string what = fmt::format("call {} of:\n{}\n", n, request.substr(0, 400));
      plan_fault(kind, n, count);
      const auto start = std::chrono::steady_clock::now();
      Response got = ask(request);
      const bool in_time = std::chrono::steady_clock::now() - start < kPatience / 2;
      const long failed = end_fault(kind);
      ASSERT_TRUE(in_time) << what;
      const bool cut = !got.complete || got.body.find("no memory for this") != std::string::npos;
      if (got.status == 503) {
        EXPECT_EQ(got.header("retry-after"), "1") << what;
        ++refused;
      } else if (got.status != 0) {
        ASSERT_EQ(got.status, expected.status) << what << got.body;
        if (same_each_time && !cut) {
          ASSERT_EQ(essence(got.body), good) << what;
        }
      }
      expect_well(what);
      if (HasFatalFailure() || failed == 0) break;
    }
    RecordProperty("tried", static_cast<int>(tried));
    fmt::print("  {} calls failed in turn, {} answers 503\n", tried, refused);
  }
  void step_through_memory(const std::string& request, bool same_each_time = true, long step = 1) {
    step_through(Fault::kAllocation, request, 1, same_each_time, step);
    if (!HasFatalFailure()) step_through(Fault::kAllocation, request, 30, same_each_time, step);
  }

  static inline const std::string kPlain =
      post("/v1/completions", R"({"prompt":"abc abc","max_tokens":6,"temperature":0})");
  FaultFree test_thread;
  std::unique_ptr<Tokenizer> tokenizer = tiny_tokenizer();
  std::unique_ptr<ChatTemplate> chat = ChatTemplate::chatml(*tokenizer);
  std::unique_ptr<Engine> engine;
  Api api;
  std::unique_ptr<HttpServer> server;
  std::thread thread;
  std::string plain;
};

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

TEST(FaultsAtStart, AFileThatCannotBeMapped) {
  plan_fault(Fault::kMap, 1);
  auto file = MappedFile::open("/proc/self/exe");
  ASSERT_EQ(end_fault(Fault::kMap), 1);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("cannot map"), std::string::npos) << file.error().message;
}

}  // namespace
}  // namespace vitrine
