// Handlers against a real engine on a tiny model. Exchange and engine take turns on one thread, so
// that every test happens in one order.
#include <gmock/gmock.h>

#include <algorithm>
#include <thread>

#include "sampling/logprobs.h"
#include "server/api_test_fixture.h"

namespace vitrine {
namespace {

using test::FakeExchange;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using test::ApiTest;

const std::string kComplete = "/v1/completions", kChat = "/v1/chat/completions";

TEST_F(ApiTest, ACompletionIsTheEnginesText) {
  auto ids = tokens({0, 4, 5, 6}, 20);
  json::object out = get(kComplete, R"({"prompt":"abc","max_tokens":20,"ignore_eos":true})");
  EXPECT_EQ(out["object"], "text_completion");
  EXPECT_EQ(out["id"], "cmpl-req-1");
  EXPECT_EQ(out["model"], "tiny");
  EXPECT_EQ(out["system_fingerprint"], "vitrine-9.9.9-cpu");
  const json::value& choice = out["choices"].at(0);
  EXPECT_EQ(text_of(choice), text(ids));
  EXPECT_EQ(choice.at("index"), 0);
  EXPECT_EQ(choice.at("finish_reason"), "length");
  EXPECT_TRUE(choice.at("logprobs").is_null());
  EXPECT_EQ(out["usage"].at("prompt_tokens"), 4);
  EXPECT_EQ(out["usage"].at("completion_tokens"), 20);
  EXPECT_EQ(out["usage"].at("total_tokens"), 24);
  EXPECT_EQ(out["usage"].at("completion_tokens_details").at("reasoning_tokens"), 0);
  EXPECT_FALSE(out.contains("vitrine"));
}

TEST_F(ApiTest, AStreamSaysTheSameAndThenItsUsage) {
  const std::string body = R"({"prompt":"abc","max_tokens":20,"ignore_eos":true)";
  std::string whole = text_of(get(kComplete, body + "}")["choices"].at(0));
  auto x = call(kComplete, body + R"(,"stream":true,"stream_options":{"include_usage":true}})");
  EXPECT_TRUE(x->streaming && x->ended);
  auto list = frames(*x);
  ASSERT_GT(list.size(), 2u);
  std::string said;
  for (std::size_t i = 0; i + 1 < list.size(); ++i) {
    EXPECT_TRUE(list[i]["usage"].is_null());
    EXPECT_EQ(list[i]["object"], "text_completion");
    const json::value& choice = list[i]["choices"].at(0);
    said += text_of(choice);
    EXPECT_EQ(choice.at("finish_reason").is_null(), i + 2 < list.size());
  }
  EXPECT_EQ(said, whole);
  EXPECT_TRUE(list.back()["choices"].as_array().empty());
  EXPECT_EQ(list.back()["usage"].at("completion_tokens"), 20);
}

TEST_F(ApiTest, AStopStringEndsTextAndCountAtItsToken) {
  std::string whole = text(tokens({0, 4, 5, 6}, 40));
  // The first place whose three characters are nowhere before.
  std::size_t at = 5;
  while (whole.find(whole.substr(at, 3)) < at) ++at;
  std::string stop = to_json(json::value(whole.substr(at, 3)));
  std::string body =
      fmt::format(R"({{"prompt":"abc","max_tokens":40,"ignore_eos":true,"stop":{})", stop);
  json::object out = get(kComplete, body + "}");
  EXPECT_EQ(text_of(out["choices"].at(0)), whole.substr(0, at));
  EXPECT_EQ(out["choices"].at(0).at("finish_reason"), "stop");
  int expected = 0;
  auto ids = tokens({0, 4, 5, 6}, 40);
  for (std::string so_far; so_far.size() < at + 3; ++expected)
    so_far = text({ids.begin(), ids.begin() + expected + 1});
  EXPECT_EQ(out["usage"].at("completion_tokens"), expected);
  auto x = call(kComplete, body + R"(,"stream":true})");
  std::string said;
  for (auto& frame : frames(*x)) said += text_of(frame["choices"].at(0));
  EXPECT_EQ(said, whole.substr(0, at));
  EXPECT_EQ(engine->pages_used()[0], 0);
}

TEST_F(ApiTest, PromptsTimesChoicesInOrder) {
  json::object out = get(
      kComplete,
      R"({"prompt":["abc","xyz"],"n":2,"max_tokens":6,"temperature":1,"seed":5,"ignore_eos":true,
          "logit_bias":{"63":-100}})");
  ASSERT_EQ(out["choices"].as_array().size(), 4u);
  std::vector<std::string> texts;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(out["choices"].at(i).at("index"), i);
    texts.push_back(text_of(out["choices"].at(i)));
  }
  EXPECT_NE(texts[0], texts[1]);
  EXPECT_EQ(out["usage"].at("prompt_tokens"), 8);
  EXPECT_EQ(out["usage"].at("completion_tokens"), 24);
  json::object second =
      get(kComplete,
          R"({"prompt":"xyz","n":2,"max_tokens":6,"temperature":1,"seed":5,"ignore_eos":true,
          "logit_bias":{"63":-100}})");
  EXPECT_EQ(text_of(second["choices"].at(0)), texts[2]);
  EXPECT_EQ(text_of(second["choices"].at(1)), texts[3]);
}

TEST_F(ApiTest, EchoWithLogprobsGivesThePromptsOwn) {
  std::vector<std::int32_t> prompt{0, 4, 5, 6};
  Request r;
  r.prompt = prompt, r.max_tokens = 0, r.sampling = api.defaults, r.logit_positions = {0, 1, 2};
  auto stream = *engine->submit(std::move(r));
  while (engine->step()) continue;
  for (const char* max_tokens : {"0", "3"}) {
    json::object out = get(
        kComplete,
        fmt::format(R"({{"prompt":"abc","max_tokens":{},"echo":true,"logprobs":2}})", max_tokens));
    const json::value& choice = out["choices"].at(0);
    EXPECT_THAT(text_of(choice), StartsWith("abc"));
    const json::value& l = choice.at("logprobs");
    std::size_t n = 4 + static_cast<std::size_t>(max_tokens[0] - '0');
    ASSERT_EQ(l.at("tokens").as_array().size(), n);
    ASSERT_EQ(l.at("token_logprobs").as_array().size(), n);
    EXPECT_EQ(l.at("tokens").at(1), "a");
    EXPECT_TRUE(l.at("token_logprobs").at(0).is_null());
    EXPECT_TRUE(l.at("top_logprobs").at(0).is_null());
    EXPECT_EQ(l.at("text_offset").at(1), 0);
    EXPECT_EQ(l.at("text_offset").at(3), 2);
    for (int i = 1; i < 4; ++i) {
      const auto& logits = stream->logits().at(i - 1);
      float expected = LogSoftmax(logits, scan_logits(logits)).logprob(logits[prompt[i]]);
      EXPECT_NEAR(l.at("token_logprobs").at(i).to_number<double>(), expected, 1e-4);
      EXPECT_GE(l.at("top_logprobs").at(i).as_object().size(), 2u);
    }
  }
}

TEST_F(ApiTest, EchoForEveryChoiceOfAPrompt) {
  json::object out =
      get(kComplete, R"({"prompt":[[4,5],[6,7,8]],"n":2,"max_tokens":1,"echo":true,"logprobs":0})");
  for (int i = 0; i < 4; ++i) {
    const json::value& choice = out["choices"].at(i);
    EXPECT_THAT(text_of(choice), StartsWith(i < 2 ? "ab" : "cde"));
    const json::array& list = choice.at("logprobs").at("token_logprobs").as_array();
    ASSERT_EQ(list.size(), i < 2 ? 3u : 4u);
    EXPECT_LT(list[1].to_number<double>(), 0);
    EXPECT_TRUE(choice.at("logprobs").at("top_logprobs").is_null());
  }
}

TEST_F(ApiTest, ChatAnswersUntilTheEndMarker) {
  json::object out = get(kChat, R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":8,
                                    "logprobs":true,"top_logprobs":3,"ignore_eos":true})");
  EXPECT_EQ(out["object"], "chat.completion");
  EXPECT_EQ(out["id"], "chatcmpl-req-1");
  const json::value& choice = out["choices"].at(0);
  EXPECT_EQ(choice.at("message").at("role"), "assistant");
  const json::array& content = choice.at("logprobs").at("content").as_array();
  ASSERT_GT(content.size(), 0u);
  EXPECT_EQ(content.size(), out["usage"].at("completion_tokens").as_int64());
  std::string said;
  for (const json::value& token : content) {
    ASSERT_EQ(token.at("top_logprobs").as_array().size(), 3u);
    // Greedy: the token is its position's best.
    EXPECT_EQ(token.at("token"), token.at("top_logprobs").at(0).at("token"));
    EXPECT_EQ(token.at("logprob"), token.at("top_logprobs").at(0).at("logprob"));
    std::string bytes;
    for (const json::value& b : token.at("bytes").as_array())
      bytes += static_cast<char>(b.as_int64());
    EXPECT_EQ(token.at("token").as_string(), bytes);
    said += bytes;
  }
  EXPECT_EQ(choice.at("message").at("content").as_string(), said);
  // The marker itself, at once.
  json::object ended =
      get(kChat, R"({"messages":[{"role":"user","content":"hi"}],"logit_bias":{"3":100}})");
  EXPECT_EQ(ended["choices"].at(0).at("message").at("content"), "");
  EXPECT_EQ(ended["choices"].at(0).at("finish_reason"), "stop");
}

TEST_F(ApiTest, AChatStreamBeginsWithItsRole) {
  const std::string body =
      R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":8,"n":2,"ignore_eos":true)";
  json::object whole = get(kChat, body + "}");
  auto x = call(kChat, body + R"(,"stream":true})");
  std::string said[2];
  bool ended[2] = {false, false};
  for (auto& frame : frames(*x)) {
    EXPECT_EQ(frame["object"], "chat.completion.chunk");
    EXPECT_FALSE(frame.contains("usage"));
    const json::value& choice = frame["choices"].at(0);
    auto i = choice.at("index").as_int64();
    const json::object& delta = choice.at("delta").as_object();
    EXPECT_EQ(delta.contains("role"), said[i].empty());
    EXPECT_FALSE(ended[i]);
    if (delta.contains("content")) said[i] += delta.at("content").as_string();
    ended[i] = !choice.at("finish_reason").is_null();
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(ended[i]);
    EXPECT_EQ(whole["choices"].at(i).at("message").at("content").as_string(), said[i]);
  }
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

TEST_F(ApiTest, WithoutATokenizerIdsGoInAndOut) {
  auto ids = tokens({4, 5}, 6);
  api.tokenizer = nullptr;
  api.chat = nullptr;
  json::object out =
      get(kComplete, R"({"prompt":[4,5],"max_tokens":6,"ignore_eos":true,"logprobs":1})");
  const json::value& choice = out["choices"].at(0);
  EXPECT_EQ(choice.at("text"), "");
  EXPECT_EQ(choice.at("token_ids"), json::value(json::array(ids.begin(), ids.end())));
  EXPECT_EQ(choice.at("logprobs").at("tokens").at(0).as_string(),
            fmt::format("token_id:{}", ids[0]));
  EXPECT_EQ(call(kChat, R"({"messages":[{"role":"user","content":"hi"}]})")->status, 400);
  EXPECT_EQ(call("/tokenize", R"({"content":"a"})")->status, 400);
}

TEST_F(ApiTest, TokenizeAndBack) {
  json::object out = get("/tokenize", R"({"content":"a b","with_pieces":true})");
  EXPECT_EQ(out["tokens"], json::value({0, 4, 56, 5}));
  EXPECT_EQ(out["count"], 4);
  EXPECT_EQ(out["pieces"].at(2), " ");
  EXPECT_EQ(
      get("/tokenize", R"({"text":"</s>","add_special":false,"parse_special":true})")["tokens"],
      json::value({1}));
  EXPECT_EQ(get("/detokenize", R"({"tokens":[4,56,5]})")["content"], "a b");
  EXPECT_EQ(get("/detokenize", R"({"tokens":[]})")["content"], "");
  for (const char* bad : {"{}", R"({"content":5})", R"({"content":"a","text":"b"})", "x"})
    EXPECT_EQ(call("/tokenize", bad)->status, 400) << bad;
  for (const char* bad : {"{}", R"({"tokens":"a"})", R"({"tokens":[64]})", R"({"tokens":[-1]})"})
    EXPECT_EQ(call("/detokenize", bad)->status, 400) << bad;
}

TEST_F(ApiTest, ModelsHealthMetricsInfo) {
  EXPECT_EQ(get("/v1/models")["data"].at(0).at("id"), "tiny");
  EXPECT_EQ(get("/v1/models/tiny")["object"], "model");
  EXPECT_EQ(get("/v1/models/t%69ny")["id"], "tiny");
  EXPECT_EQ(call("/v1/models/other")->status, 404);
  EXPECT_EQ(get("/health")["status"], "ok");
  EXPECT_EQ(call("/ready")->status, 200);
  get(kComplete, R"({"prompt":"abc","max_tokens":5,"ignore_eos":true})");
  auto metrics = call("/metrics");
  EXPECT_THAT(metrics->content_type, StartsWith("text/plain; version=0.0.4"));
  EXPECT_THAT(metrics->body, HasSubstr("vitrine:generation_tokens_total{model_name=\"tiny\"} 5\n"));
  EXPECT_THAT(
      metrics->body,
      HasSubstr(
          "vitrine:request_success_total{model_name=\"tiny\",finished_reason=\"length\"} 1\n"));
  json::object info = get("/api/info");
  EXPECT_EQ(info["version"], "9.9.9");
  EXPECT_EQ(info["model"].at("vocab"), 64);
  EXPECT_EQ(info["limits"].at("context"), 256);
  EXPECT_EQ(info["chat"].at("template"), "built in (ChatML)");
  EXPECT_EQ(info["chat"].at("tool_calls"), "hermes");
  EXPECT_EQ(info["backend"].at("name"), "cpu");
}

TEST_F(ApiTest, ApplyTemplateShowsThePromptOfAChat) {
  json::object out =
      get("/apply-template", R"({"messages":[{"role":"user","content":"a<s>"}],"temperature":1})");
  EXPECT_EQ(out["prompt"], "<s><|im_start|>user\na<s><|im_end|>\n<|im_start|>assistant\n");
  const json::array& ids = out["tokens"].as_array();
  EXPECT_EQ(std::count(ids.begin(), ids.end(), json::value(test::kBos)), 1);
  out = get("/apply-template",
            R"({"messages":[{"role":"user","content":"a"}],"add_generation_prompt":false})");
  EXPECT_EQ(out["prompt"], "<s><|im_start|>user\na<|im_end|>\n");
  EXPECT_EQ(call("/apply-template", R"({"messages":5})")->status, 400);
}

// The tiny tokenizer with other special tokens in place of ChatML's.
std::unique_ptr<Tokenizer> tokenizer_with(const std::string& first, const std::string& second) {
  std::string text = test::tokenizer_json(true);
  for (auto [from, to] :
       {std::pair<std::string, std::string>{"<|im_start|>", first}, {"<|im_end|>", second}})
    for (std::size_t at; (at = text.find(from)) != text.npos;) text.replace(at, from.size(), to);
  return std::move(Tokenizer::from_json(text, R"({"bos_token":"<s>","eos_token":"</s>"})")).value();
}

TEST_F(ApiTest, ReasoningIsSplitCountedAndBounded) {
  auto thinking = tokenizer_with("<think>", "</think>");
  auto made = ChatTemplate::from_source("{{ messages[0].content }}<think>{# </think> #}", "mine",
                                        *thinking);
  ASSERT_TRUE(made.ok()) << made.error().message;
  api.tokenizer = thinking.get();
  api.chat = made->get();
  // The model may not end its reasoning by itself.
  const std::string body =
      R"({"messages":[{"role":"user","content":"a"}],"max_tokens":9,"ignore_eos":true,)"
      R"("logit_bias":{"0":-100,"1":-100,"2":-100,"3":-100,"63":-100})";
  json::object endless = get(kChat, body + "}");
  const json::object& thought = endless["choices"].at(0).at("message").as_object();
  EXPECT_EQ(thought.at("content"), "");
  EXPECT_FALSE(thought.at("reasoning_content").as_string().empty());
  EXPECT_EQ(endless["usage"].at("completion_tokens_details").at("reasoning_tokens"), 9);
  json::object bounded = get(kChat, body + R"(,"reasoning_budget":3})");
  const json::object& said = bounded["choices"].at(0).at("message").as_object();
  EXPECT_EQ(bounded["usage"].at("completion_tokens_details").at("reasoning_tokens"), 3);
  EXPECT_EQ(bounded["usage"].at("completion_tokens"), 9);
  EXPECT_FALSE(said.at("content").as_string().empty());
  EXPECT_TRUE(
      thought.at("reasoning_content")
          .as_string()
          .starts_with(json::string_view(said.at("reasoning_content").as_string()).substr(0, 2)));
  // The same, streamed.
  auto x = call(kChat, body + R"(,"reasoning_budget":3,"stream":true})");
  std::string content, reasoning;
  for (const json::object& frame : frames(*x)) {
    const json::object& delta = frame.at("choices").at(0).at("delta").as_object();
    if (delta.contains("content")) content += delta.at("content").as_string();
    if (delta.contains("reasoning_content")) reasoning += delta.at("reasoning_content").as_string();
  }
  EXPECT_EQ(content, std::string(said.at("content").as_string()));
  EXPECT_EQ(reasoning, std::string(said.at("reasoning_content").as_string()));
  // A template without reasoning has none to bound.
  api.tokenizer = tokenizer.get();
  api.chat = chat_template.get();
  auto refused = call(kChat, body + R"(,"reasoning_budget":3})");
  EXPECT_EQ(refused->status, 400);
  EXPECT_THAT(refused->body, HasSubstr("reasoning_budget"));
}

TEST_F(ApiTest, RequestsByIdAndLabel) {
  get(kComplete, R"({"prompt":"abc","max_tokens":5,"n":2,"ignore_eos":true})");
  FakeExchange x(io, R"({"prompt":"abc","max_tokens":50,"ignore_eos":true})");
  x.mutable_request().id = "req-2";
  begin(x, kComplete);
  turn();
  for (int i = 0; i < 4; ++i) engine->step(), turn();
  FakeExchange list(io, ""), snapshot(io, ""), live(io, "");
  begin(list, "/api/requests");
  begin(snapshot, "/api/snapshot");
  turn();
  json::value all = json::parse(list.body);
  ASSERT_EQ(all.at("ended").as_array().size(), 2u);
  ASSERT_EQ(all.at("live").as_array().size(), 1u);
  EXPECT_EQ(all.at("live").at(0).at("label"), "req-2");
  EXPECT_EQ(all.at("live").at(0).at("state"), "decode");
  json::value now = json::parse(snapshot.body);
  EXPECT_EQ(now.at("running").as_array().size(), 1u);
  EXPECT_GT(now.at("pools").at(0).at("used").as_int64(), 0);
  begin(live, "/api/requests/req-2");
  turn();
  EXPECT_EQ(json::parse(live.body).at("requests").at(0).at("records").as_array().size(), 4u);
  finish();
  json::object both = get("/api/requests/req-1");
  ASSERT_EQ(both["requests"].as_array().size(), 2u);
  const json::value& first = both["requests"].at(0);
  EXPECT_EQ(first.at("finish_reason"), "length");
  EXPECT_GE(first.at("records").as_array().size(), 5u);
  json::object by_id = get("/api/requests/" + to_json(first.at("id")));
  EXPECT_EQ(by_id["requests"].as_array().size(), 1u);
  EXPECT_EQ(call("/api/requests/nobody")->status, 404);
}

TEST_F(ApiTest, IsolatedKeysSeeOnlyTheirOwn) {
  api.isolate_keys = true;
  const std::string body = R"({"prompt":"abcdefghijklmnopqrstuvw","max_tokens":2})";
  call(kComplete, body, "ann");
  auto cached = [](const FakeExchange& x) {
    return json::parse(x.body).at("usage").at("prompt_tokens_details").at("cached_tokens");
  };
  EXPECT_EQ(cached(*call(kComplete, body, "bob")), 0);
  EXPECT_EQ(cached(*call(kComplete, body, "ann")), 16);
  auto ended = [&](const char* tenant) {
    return json::parse(call("/api/requests", "", tenant)->body).at("ended").as_array().size();
  };
  EXPECT_EQ(ended("ann"), 2u);
  EXPECT_EQ(ended("bob"), 1u);
  EXPECT_EQ(call("/api/requests/req-1", "", "carl")->status, 404);
}

TEST_F(ApiTest, OnlyHealthIsOpen) {
  for (const Route& r : routes) EXPECT_EQ(r.open, r.path == "/health") << r.path;
}

}  // namespace
}  // namespace vitrine
