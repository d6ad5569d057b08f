// GPT-OSS's format with its markers as special tokens, as the model's own tokenizer has them: from
// a request to the parts of the answer, streamed and not.
#include "server/answer/choice_reader.h"
#include "server/api_test_fixture.h"

namespace vitrine {
namespace {

constexpr std::string_view kMarkers[] = {"<|channel|>", "<|message|>",   "<|end|>",   "<|start|>",
                                         "<|call|>",    "<|constrain|>", "<|return|>"};

// The tiny tokenizer, with some letters replaced by markers and by what JSON needs.
std::unique_ptr<Tokenizer> harmony_tokenizer() {
  json::value tokenizer = json::parse(test::tokenizer_json(true));
  json::object& vocab = tokenizer.at("model").at("vocab").as_object();
  auto take = [&](char letter) {
    const std::string key(1, letter);
    json::value id = vocab.at(key);
    vocab.erase(key);
    return id;
  };
  constexpr std::string_view kLetters = "ABCDEFGH", kSigns = "{}\"_=,[]";
  for (std::size_t i = 0; i < kLetters.size(); ++i) vocab[kSigns.substr(i, 1)] = take(kLetters[i]);
  for (std::size_t i = 0; i < std::size(kMarkers); ++i)
    tokenizer.at("added_tokens")
        .as_array()
        .push_back(json::object{
            {"id", take(static_cast<char>('I' + i))}, {"content", kMarkers[i]}, {"special", true}});
  auto made = Tokenizer::from_json(json::serialize(tokenizer),
                                   R"({"bos_token":"<s>","eos_token":"<|return|>"})");
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made).value();
}

constexpr const char* kTemplate =
    "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor %}"
    "<|start|>assistant{# <|channel|> <|call|> <|return|> #}";

class Harmony : public test::ApiTest {
 protected:
  Harmony() {
    tokenizer = harmony_tokenizer();
    auto made = ChatTemplate::from_source(kTemplate, "test", *tokenizer);
    EXPECT_TRUE(made.ok()) << made.error().message;
    chat_template = std::move(*made);
    api.tokenizer = tokenizer.get();
    api.chat = chat_template.get();
  }
  std::vector<std::int32_t> ids(std::string_view text) {
    return tokenizer->encode(text, {.add_special = false, .parse_special = true});
  }
  // What a client gets when the model says `text`: the budget for reasoning, with an end of many
  // tokens, makes it.
  ChatOutput say(const std::string& text, bool streamed) {
    Call call;
    call.prompts = {{test::kBos, 4}};
    call.chat =
        ChatCall{chat_template->tools(), nullptr, false, true, chat_template->shown_specials()};
    call.request.prompt = call.prompts[0];
    call.request.stop_token_ids = chat_template->stop_token_ids();
    call.request.reasoning = ReasoningBudget{0, {test::kBos}, ids(text), true};
    auto stream = *engine->submit(call.request);
    ChoiceReader reader(call, TextStream(*tokenizer, call.prompts[0]), 0, stream, stream);
    ChatOutput all;
    auto take = [&] {
      Part part = reader.take();
      all.content += part.text, all.reasoning += part.reasoning;
      for (Part::CallPart& one : part.calls) {
        if (!one.id.empty()) all.begin_call(one.name);
        all.add_arguments(one.arguments);
      }
      if (part.finish_reason != nullptr) finish_reason = part.finish_reason;
    };
    while (!reader.closed()) {
      engine->step();
      do {
        reader.pump(1);
        if (streamed && reader.has_news()) take();
      } while (reader.behind());
    }
    if (!streamed || reader.has_news()) take();
    reasoning_tokens = reader.reasoning_tokens();
    return all;
  }
  json::object chat(const std::string& fields) {
    return get(
        "/v1/chat/completions",
        R"({"messages":[{"role":"user","content":"hi"}],"seed":1,"temperature":1,)" + fields + "}");
  }

  std::string finish_reason;
  int reasoning_tokens = 0;
};

TEST_F(Harmony, MarkersAreSpecialTokensOfTheTemplateOnly) {
  json::object shown =
      get("/apply-template", R"({"messages":[{"role":"user","content":"a <|end|>"}]})");
  EXPECT_EQ(shown.at("prompt"), "<|start|>user<|message|>a <|end|><|end|><|start|>assistant");
  ChatInput input;
  input.messages.resize(1);
  input.messages[0].role = "user", input.messages[0].content = "a <|end|>";
  auto prompt = chat_template->prompt(input);
  ASSERT_TRUE(prompt.ok());
  EXPECT_EQ(std::count(prompt->ids.begin(), prompt->ids.end(), ids("<|end|>")[0]), 1);
  EXPECT_EQ(ids("<|channel|>").size(), 1u);
  // <|end|> ends a message, not the answer.
  EXPECT_THAT(chat_template->stop_token_ids(),
              ::testing::UnorderedElementsAre(ids("<|return|>")[0], ids("<|call|>")[0]));
}

TEST_F(Harmony, ChannelsComeApart) {
  for (bool streamed : {false, true}) {
    ChatOutput out =
        say("<|channel|>analysis<|message|>need f<|end|><|start|>assistant<|channel|>commentary"
            "<|message|>one moment<|end|><|start|>assistant<|channel|>commentary to=functions.f "
            "<|constrain|>json<|message|>{\"a\":[0]}<|call|>",
            streamed);
    EXPECT_EQ(out.reasoning, "need f");
    EXPECT_EQ(out.content, "one moment");
    ASSERT_EQ(out.calls.size(), 1u);
    EXPECT_EQ(out.calls[0].name, "f");
    EXPECT_EQ(out.calls[0].arguments, "{\"a\":[0]}");
    EXPECT_EQ(finish_reason, "tool_calls");
    // After <|message|>, six characters.
    EXPECT_EQ(reasoning_tokens, 7);
    out =
        say("<|channel|>analysis<|message|>ok<|end|><|start|>assistant<|channel|>final<|message|>"
            "hello.<|return|>",
            streamed);
    EXPECT_EQ(out.reasoning, "ok");
    EXPECT_EQ(out.content, "hello.");
    EXPECT_EQ(finish_reason, "stop");
    // The recipient may come before the channel.
    out = say("<|start|>assistant to=functions.g<|channel|>commentary json<|message|>{}<|call|>",
              streamed);
    ASSERT_EQ(out.calls.size(), 1u);
    EXPECT_EQ(out.calls[0].name, "g");
  }
}

const std::string kTools = R"("tools":[{"type":"function","function":{"name":"f","strict":true,
    "parameters":{"type":"object","properties":{"a":{"enum":[0]}},"required":["a"],
    "additionalProperties":false}}}],)";

TEST_F(Harmony, RequiredCallsAreWrittenWithTheSpecialTokens) {
  for (const char* more : {"", R"("reasoning_budget":4,)", R"("reasoning_budget":0,)"}) {
    SCOPED_TRACE(more);
    const std::string fields = kTools + more + R"("tool_choice":"required","max_tokens":200)";
    json::object answer = chat(fields);
    const json::value& choice = answer.at("choices").at(0);
    EXPECT_EQ(choice.at("finish_reason"), "tool_calls") << json::serialize(answer);
    ASSERT_TRUE(choice.at("message").as_object().contains("tool_calls")) << json::serialize(answer);
    const json::value& function = choice.at("message").at("tool_calls").at(0).at("function");
    EXPECT_EQ(function.at("name"), "f");
    EXPECT_EQ(json::parse(function.at("arguments").as_string()), (json::value{{"a", 0}}));
    EXPECT_TRUE(choice.at("message").at("content").is_null());

    auto x = call("/v1/chat/completions",
                  R"({"messages":[{"role":"user","content":"hi"}],"seed":1,"temperature":1,)"
                  R"("stream":true,)" +
                      fields + "}");
    std::string name, arguments, finish;
    for (const json::object& frame : frames(*x)) {
      const json::value& part = frame.at("choices").at(0);
      if (part.at("finish_reason").is_string()) finish = part.at("finish_reason").as_string();
      if (const json::value* calls = part.at("delta").as_object().if_contains("tool_calls")) {
        const json::object& f = calls->at(0).at("function").as_object();
        if (f.contains("name")) name += std::string(f.at("name").as_string());
        arguments += std::string(f.at("arguments").as_string());
      }
    }
    EXPECT_EQ(name, "f");
    EXPECT_EQ(arguments, std::string(function.at("arguments").as_string()));
    EXPECT_EQ(finish, "tool_calls");
  }
}

// A marker's text may be in a string; the marker itself may not.
TEST_F(Harmony, MarkersDoNotComeInsideArguments) {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f","parameters":
      {"type":"object","properties":{"a":{"type":"string","minLength":20,"maxLength":30}},
      "required":["a"],"additionalProperties":false}}}],"tool_choice":"required",)";
  for (int seed = 0; seed < 20; ++seed) {
    json::object answer =
        get("/v1/chat/completions",
            fmt::format(R"({{"messages":[{{"role":"user","content":"hi"}}],"seed":{},)"
                        R"("temperature":2,"max_tokens":200,)",
                        seed) +
                tools + R"("reasoning_budget":3})");
    const json::value& choice = answer.at("choices").at(0);
    ASSERT_EQ(choice.at("finish_reason"), "tool_calls") << json::serialize(answer);
    const json::value& function = choice.at("message").at("tool_calls").at(0).at("function");
    boost::system::error_code wrong;
    json::value given = json::parse(function.at("arguments").as_string(), wrong);
    ASSERT_FALSE(wrong) << json::serialize(answer);
    EXPECT_GE(given.at("a").as_string().size(), 20u) << json::serialize(answer);
  }
}

TEST_F(Harmony, ConstrainedTextIsTheFinalChannels) {
  json::object answer = chat(R"("regex":"ab+","max_tokens":60)");
  const std::string content(answer.at("choices").at(0).at("message").at("content").as_string());
  EXPECT_EQ(content.substr(0, 2), "ab") << json::serialize(answer);
  EXPECT_EQ(content.find_first_not_of('b', 1), content.npos) << content;
  answer = chat(R"("choice":["yes","no"],"reasoning_budget":3,"max_tokens":60)");
  EXPECT_THAT(std::string(answer.at("choices").at(0).at("message").at("content").as_string()),
              ::testing::AnyOf("yes", "no"))
      << json::serialize(answer);
  EXPECT_EQ(answer.at("choices").at(0).at("finish_reason"), "stop");
}

}  // namespace
}  // namespace vitrine
