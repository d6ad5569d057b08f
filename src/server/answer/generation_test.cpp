// How answers begin, fail and end: refusals, deadlines, full queues, clients that leave, shutdown.
#include <map>
#include <thread>

#include "server/answer/pieces.h"
#include "server/api_test_fixture.h"

namespace vitrine {
namespace {

using test::ApiTest;
using test::FakeExchange;

const std::string kComplete = "/v1/completions", kChat = "/v1/chat/completions";

// Before the engine has a request, it has changed threads twice: to a worker and back.
TEST_F(ApiTest, OneJobOnAWorkerTakesARequestToTheEngine) {
  const std::pair<const char*, const char*> requests[] = {
      {"/v1/completions", R"({"prompt":["abc","abd"],"n":2,"max_tokens":4})"},
      {"/v1/completions", R"({"prompt":"abc","max_tokens":4,"stream":true})"},
      {"/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":4})"},
      {"/v1/embeddings", R"({"input":["abc","abd"]})"}};
  for (auto [path, body] : requests) {
    FakeExchange x(io, body);
    begin(x, path);
    turn();
    EXPECT_EQ(x.worker_jobs, 1) << path;
    EXPECT_GT(api.live.size(), 0u) << path;
    finish();
    EXPECT_EQ(x.status, 200) << x.body;
    EXPECT_EQ(x.worker_jobs, 2) << path;  // the second writes the answer, or its end
  }
}

TEST_F(ApiTest, AClientThatLeavesWhileItsRequestIsReadIsCancelled) {
  const std::pair<const char*, const char*> requests[] = {
      {"/v1/completions", R"({"prompt":"abc","n":3,"max_tokens":200,"ignore_eos":true})"},
      {"/v1/completions", R"({"prompt":"abc","max_tokens":200,"ignore_eos":true,"stream":true})"},
      {"/v1/embeddings", R"({"input":["abc","abd"]})"}};
  for (auto [path, body] : requests) {
    FakeExchange x(io, body);
    x.leave_during_job = 1;
    begin(x, path);
    turn();
    engine->step();
    finish();
    while (engine->step()) continue;
    EXPECT_EQ(x.status, 0) << path;
    EXPECT_EQ(engine->pages_used()[0], 0) << path;
    EXPECT_EQ(api.live.size(), 0u) << path;
    for (const Account& account : engine->accounts())
      EXPECT_EQ(account.reason, FinishReason::kCancelled) << path;
  }
}

// What a slow reader has left goes out in pieces, and no token is lost on the way.
TEST_F(ApiTest, ABacklogOfAStreamIsSentInPieces) {
  FakeExchange x(io, R"({"prompt":"abc","n":8,"max_tokens":120,"ignore_eos":true,"stream":true,
                         "logprobs":5})");
  begin(x, kComplete);
  turn();
  while (engine->step()) continue;
  finish();
  EXPECT_GT(x.sent, 4 * kPieceBytes);
  EXPECT_LT(x.largest, kPieceBytes + 4096);
  std::map<std::int64_t, std::string> texts;
  for (const json::object& frame : frames(x))
    for (const json::value& choice : frame.at("choices").as_array())
      texts[choice.at("index").as_int64()] += text_of(choice);
  const std::string expected = text(tokens({0, 4, 5, 6}, 120));
  EXPECT_EQ(texts.size(), 8u);
  for (const auto& [index, text] : texts) EXPECT_EQ(text, expected) << index;
}

TEST_F(ApiTest, BadRequestsAreRefusedInOpenaisShape) {
  auto x = call(kComplete, R"({"prompt":"a","n":0})");
  EXPECT_EQ(x->status, 400);
  json::value error = json::parse(x->body).at("error");
  EXPECT_EQ(error.at("type"), "invalid_request_error");
  EXPECT_EQ(error.at("param"), "n");
  EXPECT_TRUE(error.at("code").is_null());
  EXPECT_EQ(call(kComplete, R"({"prompt":"a","model":"gpt"})")->status, 404);
  EXPECT_EQ(call(kComplete, "{")->status, 400);
  EXPECT_EQ(call(kChat, R"({"messages":[]})")->status, 400);
  EXPECT_EQ(call(kChat, "[]")->status, 400);
  json::object next = get(kComplete, R"({"prompt":"abc","max_tokens":4,"ignore_eos":true})");
  EXPECT_EQ(text_of(next["choices"].at(0)), text(tokens({0, 4, 5, 6}, 4)));
}

TEST_F(ApiTest, BrokenLogitsAreA500BeforeTheHeadersAndAFrameAfterThem) {
  for (const char* stream : {"false", "true"}) {
    auto x = call(kComplete, fmt::format(R"({{"prompt":[4,63],"stream":{}}})", stream));
    EXPECT_EQ(x->status, 500) << stream;
    EXPECT_EQ(json::parse(x->body).at("error").at("type"), "server_error");
  }
  // The first token is the one that poisons what follows.
  auto x = call(kComplete, R"({"prompt":"abc","logit_bias":{"63":100},"stream":true})");
  EXPECT_EQ(x->status, 200);
  EXPECT_TRUE(x->ended);
  auto list = frames(*x, false);
  EXPECT_TRUE(list.back().contains("error"));
  EXPECT_EQ(list.back()["error"].at("type"), "server_error");
  EXPECT_EQ(call(kComplete, R"({"prompt":"abc","logit_bias":{"63":100}})")->status, 500);
}

TEST_F(ApiTest, ADeadlineBeforeTheFirstTokenIs504) {
  for (const char* stream : {"false", "true"}) {
    FakeExchange x(io,
                   fmt::format(R"({{"prompt":"abc","n":2,"timeout":0.001,"stream":{}}})", stream));
    begin(x, kComplete);
    turn();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    finish();
    EXPECT_EQ(x.status, 504) << x.body;
    EXPECT_EQ(json::parse(x.body).at("error").at("param"), "timeout");
  }
}

TEST_F(ApiTest, ADeadlineAfterTokensReturnsThem) {
  for (const char* stream : {"false", "true"}) {
    FakeExchange x(io, fmt::format(R"({{"prompt":"abc","timeout":0.2,"max_tokens":200,
                                        "ignore_eos":true,"stream":{}}})",
                                   stream));
    begin(x, kComplete);
    turn();
    for (int i = 0; i < 6; ++i) engine->step();
    turn();
    std::this_thread::sleep_for(std::chrono::milliseconds(210));
    finish();
    EXPECT_EQ(x.status, 200);
    std::string said;
    json::value last;
    if (x.streaming) {
      for (auto& frame : frames(x)) said += text_of(last = frame["choices"].at(0));
    } else {
      said = text_of(last = json::parse(x.body).at("choices").at(0));
    }
    EXPECT_EQ(last.at("finish_reason"), "timeout");
    EXPECT_FALSE(said.empty());
    EXPECT_LT(said.size(), 100u);
  }
}

class FullQueue : public ApiTest {
 protected:
  FullQueue() : ApiTest(1) {}
};

TEST_F(FullQueue, IsA429WithRetryAfter) {
  FakeExchange first(io, R"({"prompt":"abc","max_tokens":4})");
  begin(first, kComplete);
  turn();
  FakeExchange second(io, R"({"prompt":"abc","max_tokens":4,"stream":true})");
  begin(second, kComplete);
  turn();
  EXPECT_EQ(second.status, 429);
  ASSERT_EQ(second.headers.size(), 1u);
  EXPECT_EQ(second.headers[0].first, "Retry-After");
  EXPECT_GE(std::stoi(second.headers[0].second), 1);
  EXPECT_EQ(json::parse(second.body).at("error").at("code"), "queue_full");
  // The same for a later prompt of a request: the ones before it are taken back.
  FakeExchange many(io, R"({"prompt":["abc","abd"],"max_tokens":4})");
  finish();
  EXPECT_EQ(first.status, 200);
  begin(many, kComplete);
  turn();
  EXPECT_EQ(many.status, 429);
  while (engine->step()) continue;
  EXPECT_EQ(engine->snapshot().running.size() + engine->snapshot().waiting.size(), 0u);
  EXPECT_EQ(api.live.size(), 0u);
}

TEST_F(ApiTest, AClientThatGoesAwayFreesItsPages) {
  for (const char* stream : {"false", "true"})
    for (int steps : {0, 1, 5}) {
      FakeExchange x(io, fmt::format(R"({{"prompt":"abcdefghijklmnopqrstuvw","n":3,
                                         "max_tokens":200,"ignore_eos":true,"stream":{}}})",
                                     stream));
      begin(x, kComplete);
      turn();
      for (int i = 0; i < steps; ++i) engine->step(), turn();
      x.leave();
      engine->step();
      turn();
      finish();
      while (engine->step()) continue;
      EXPECT_EQ(engine->pages_used()[0], 0);
      EXPECT_EQ(api.live.size(), 0u);
      EXPECT_FALSE(x.ended);
    }
}

TEST_F(ApiTest, ShutdownRefusesNewWorkAndCutsTheRest) {
  const std::string body = R"({"prompt":"abc","max_tokens":200,"ignore_eos":true,"stream":)";
  FakeExchange early(io, body + "true}"), late(io, body + "true}");
  begin(early, kComplete);
  turn();
  for (int i = 0; i < 4; ++i) engine->step(), turn();
  begin(late, kComplete);
  turn();
  api.draining = true;
  FakeExchange after(io, body + "false}"), ready(io, ""), health(io, "");
  begin(after, kComplete);
  begin(ready, "/ready");
  begin(health, "/health");
  turn();
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(health.status, 200);
  EXPECT_EQ(after.status, 503);
  api.live.cancel_all();
  finish();
  EXPECT_EQ(late.status, 503);
  auto list = frames(early, false);
  EXPECT_EQ(list.back()["error"].at("code"), "shutting_down");
  EXPECT_TRUE(early.ended);
}

TEST_F(ApiTest, TimingsOnRequest) {
  const std::string body =
      R"({"prompt":"abcdefghijklmnopqrstuvw","max_tokens":6,"ignore_eos":true,"seed":77,
          "vitrine":{"timings":true})";
  get(kComplete, body + "}");
  json::object out = get(kComplete, body + "}");
  const json::value& one = out["vitrine"].at("choices").at(0);
  EXPECT_EQ(one.at("seed"), 77);
  EXPECT_EQ(one.at("label"), "req-1");
  EXPECT_EQ(one.at("prompt_tokens"), 24);
  EXPECT_EQ(one.at("inter_token_ms").at("list").as_array().size(), 5u);
  for (const char* name : {"queue_ms", "prefill_ms", "decode_ms", "batch_mean", "batch_max",
                           "pages", "flops", "weight_bytes", "kv_read_bytes"})
    EXPECT_GT(one.at(name).to_number<double>(), 0) << name;
  EXPECT_EQ(one.at("preemptions"), 0);
  // The first page of 16 came from the request before.
  EXPECT_EQ(out["usage"].at("prompt_tokens_details").at("cached_tokens"), 16);
  EXPECT_EQ(one.at("cache").at("cached"), 16);
  EXPECT_FALSE(one.at("cache").at("text").as_string().empty());
  auto x = call(kComplete, body + R"(,"stream":true})");
  auto list = frames(*x);
  EXPECT_TRUE(list.back().contains("vitrine"));
  EXPECT_TRUE(list.back()["choices"].as_array().empty());
}

}  // namespace
}  // namespace vitrine
