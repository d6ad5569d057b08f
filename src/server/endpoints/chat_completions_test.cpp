// POST /v1/chat/completions and /apply-template against a real engine on a tiny model.
#include <algorithm>

#include "server/api_test_fixture.h"

namespace vitrine {
namespace {

using test::ApiTest;
using ::testing::HasSubstr;

const std::string kChat = "/v1/chat/completions";

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

}  // namespace
}  // namespace vitrine
