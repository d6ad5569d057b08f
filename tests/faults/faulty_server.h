// For tests of what a server does when calls of the system fail: a whole server on sockets, and the Nth call that
// fails, for N = 1, 2, 3, ... until a request needs no further one.
#pragma once

#include <regex>

#include "server/api_testing.h"
#include "server/http/test_client.h"
#include "support/faults.h"

namespace vitrine::test {

inline long stride() {
  const char* text = std::getenv("VITRINE_FAULT_STRIDE");
  return text != nullptr ? std::max(1L, std::atol(text)) : 1;
}

inline EngineOptions engine_options() {
  EngineOptions options;
  options.backend = "cpu", options.threads = 1, options.sequences = 8, options.page_size = 16;
  options.context = 256;
  return options;
}

// A whole server on sockets; the test's own thread does not fail.
class Faults : public ::testing::Test {
 protected:
  explicit Faults(const EngineOptions& options = engine_options()) {
    auto made = Engine::create(tiny_model(), options);
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
           server->counts().answer_bytes == 0 && api.trace.streams() == 0 &&
           engine->pages_used() == std::vector<int>{0};
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
    if (prepare) prepare();
    const Response expected = ask(request);
    const std::string good = essence(expected.body);
    long tried = 0, refused = 0;
    for (long n = 1;; n += kind == Fault::kAllocation ? stride() * step : 1, ++tried) {
      const std::string what = fmt::format("call {} of:\n{}\n", n, request.substr(0, 400));
      if (prepare) prepare();
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
  std::function<void()> prepare;  // before each time that the request is asked
  FaultFree test_thread;
  std::unique_ptr<Tokenizer> tokenizer = tiny_tokenizer();
  std::unique_ptr<ChatTemplate> chat = ChatTemplate::chatml(*tokenizer);
  std::unique_ptr<Engine> engine;
  Api api;
  std::unique_ptr<HttpServer> server;
  std::thread thread;
  std::string plain;
};

}  // namespace vitrine::test
