// POST /v1/completions against a real engine on a tiny model.
#include "sampling/logprobs.h"
#include "server/api_test_fixture.h"

namespace vitrine {
namespace {

using test::ApiTest;
using test::FakeExchange;
using ::testing::StartsWith;

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

// The choices that n alone would give, those with the best mean log probability first.
TEST_F(ApiTest, BestOfShowsTheLikeliestOfMany) {
  const std::string body =
      R"({"prompt":["abc","d"],"max_tokens":8,"temperature":1.5,"seed":3,"ignore_eos":true,)"
      R"("logit_bias":{"63":-100})";
  json::object all = get(kComplete, body + R"(,"n":5,"logprobs":0})");
  json::object best = get(kComplete, body + R"(,"n":2,"best_of":5})");
  ASSERT_EQ(best["choices"].as_array().size(), 4u);
  for (std::size_t prompt = 0; prompt < 2; ++prompt) {
    std::vector<std::pair<double, std::string>> ranked;
    for (std::size_t i = 5 * prompt; i < 5 * prompt + 5; ++i) {
      const json::value& choice = all["choices"].at(i);
      double sum = 0;
      for (const json::value& x : choice.at("logprobs").at("token_logprobs").as_array())
        sum += x.to_number<double>();
      ranked.emplace_back(sum, text_of(choice));
    }
    std::sort(ranked.rbegin(), ranked.rend());
    for (std::size_t i = 0; i < 2; ++i) {
      const json::value& choice = best["choices"].at(2 * prompt + i);
      EXPECT_EQ(choice.at("index"), 2 * prompt + i);
      EXPECT_EQ(text_of(choice), ranked[i].second) << prompt << " " << i;
      EXPECT_TRUE(choice.at("logprobs").is_null());
    }
  }
  EXPECT_EQ(best["usage"], all["usage"]) << "all were drawn";
}

TEST_F(ApiTest, BeamSearchReturnsTheBestTexts) {
  const std::string body =
      R"({"prompt":"abc","max_tokens":8,"ignore_eos":true,"use_beam_search":true,"n":2,"beams":3,)"
      R"("length_penalty":0.5,"logit_bias":{"63":-100})";
  Request r;
  r.prompt = {0, 4, 5, 6};
  r.max_tokens = 8, r.ignore_eos = true, r.choices = 2;
  r.beams = BeamOptions{.beams = 3, .returned = 2, .length_penalty = 0.5};
  ASSERT_TRUE(r.sampling.set_logit_bias({{63, -100}}).ok());
  auto streams = *engine->submit_choices(std::move(r));
  while (engine->step()) continue;
  json::object out = get(kComplete, body + "}");
  ASSERT_EQ(out["choices"].as_array().size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const json::value& choice = out["choices"].at(i);
    std::vector<std::int32_t> ids;
    while (auto event = streams[i]->next()) ids.push_back(event->token);
    EXPECT_EQ(text_of(choice), text(ids));
    EXPECT_EQ(choice.at("score").to_number<double>(), *streams[i]->wait().score);
    EXPECT_EQ(choice.at("finish_reason"), "length");
  }
  EXPECT_GE(out["choices"].at(0).at("score").to_number<double>(),
            out["choices"].at(1).at("score").to_number<double>());
  EXPECT_EQ(out["usage"].at("prompt_tokens"), 4);
  EXPECT_EQ(out["usage"].at("completion_tokens"), 16) << "of what is returned";
  // vLLM's name for the beams, and as a stream.
  std::string best_of = body;
  best_of.replace(best_of.find("\"beams\""), 7, "\"best_of\"");
  EXPECT_EQ(get(kComplete, best_of + "}")["choices"], out["choices"]);
  std::string said[2];
  json::value scores[2];
  auto x = call(kComplete, body + R"(,"stream":true})");
  for (auto& frame : frames(*x)) {
    const json::object& choice = frame["choices"].at(0).as_object();
    const auto i = choice.at("index").to_number<std::size_t>();
    said[i] += text_of(frame["choices"].at(0));
    EXPECT_EQ(choice.contains("score"), !choice.at("finish_reason").is_null());
    if (choice.contains("score")) scores[i] = choice.at("score");
  }
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(said[i], text_of(out["choices"].at(i)));
    EXPECT_EQ(scores[i], out["choices"].at(i).at("score"));
  }
  EXPECT_EQ(engine->pages_used()[0], 0);
}

TEST_F(ApiTest, BeamSearchRefusesByName) {
  const std::string body = R"({"prompt":"abc","max_tokens":4,"use_beam_search":true)";
  for (const auto& [fields, message] : std::map<std::string, std::string>{
           {R"(,"n":2,"beams":1)", "n: found 2, allowed up to beams, which is 1"},
           {R"(,"beams":99)", "beams: found 99, allowed 1 to"},
           {R"(,"temperature":0.5)", "temperature: found 0.5, a beam search allows only 1"},
           {R"(,"top_p":0.5)", "top_p: found 0.5, a beam search allows only 1"},
           {R"(,"preset":"creative")", "min_p: found"},
           {R"(,"logprobs":1)", "logprobs: not with beam search"},
           {R"(,"early_stopping":"sometimes")", "early_stopping: found"},
           {R"(,"early_stopping":1)", "early_stopping: found 1, allowed true, false or"},
           {R"(,"length_penalty":1e9)", "length_penalty: found 1000000000, allowed -100 to 100"},
           {R"(,"beams":3,"beam_groups":2)", "beam_groups: found 2, allowed what divides beams"},
           {R"(,"diversity_penalty":1)", "diversity_penalty: found 1, allowed only 0"}}) {
    auto x = call(kComplete, body + fields + "}");
    EXPECT_EQ(x->status, 400) << fields;
    EXPECT_THAT(x->body, ::testing::HasSubstr("\"" + message)) << fields;
  }
  for (const char* name : {"beams", "length_penalty", "beam_groups"}) {
    auto x = call(kComplete, fmt::format(R"({{"prompt":"a","{}":1}})", name));
    EXPECT_EQ(x->status, 400);
    EXPECT_THAT(x->body, ::testing::HasSubstr(fmt::format("{}: allowed only with", name)));
  }
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

// Tokens that wait for the end of their answer count as its bytes.
TEST_F(ApiTest, AnAnswerThatWouldKeepTooMuchIsRefused) {
  const std::string body =
      R"({"prompt":"abc","max_tokens":100,"ignore_eos":true,"logprobs":5,"n":4)";
  auto enough = call(kComplete, body + "}");
  EXPECT_EQ(enough->status, 200);
  EXPECT_GE(enough->held, 4 * 99 * 5 * 8);
  FakeExchange full(io, body + "}");
  full.most_held = enough->held / 2;
  begin(full, kComplete);
  finish();
  EXPECT_EQ(full.status, 503) << full.body;
  EXPECT_THAT(full.headers, ::testing::Contains(::testing::Pair("Retry-After", "1")));
  EXPECT_EQ(api.live.size(), 0u);
  while (engine->step()) continue;
  EXPECT_EQ(engine->pages_used()[0], 0);
  // A stream keeps nothing.
  FakeExchange stream(io, body + R"(,"stream":true})");
  stream.most_held = 0;
  begin(stream, kComplete);
  finish();
  EXPECT_EQ(stream.status, 200);
}

}  // namespace
}  // namespace vitrine
