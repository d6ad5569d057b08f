// Answers of a chat from the engine's tokens to the parts that are shown. The budget for reasoning,
// with an end of many tokens, makes a model of random weights say what a test wants.
#include "server/answer/choice_reader.h"

#include "server/api_testing.h"

namespace vitrine {
namespace {

// The tiny tokenizer, with some letters replaced by what JSON and tags need.
std::unique_ptr<Tokenizer> json_tokenizer() {
  json::value tokenizer = json::parse(test::tokenizer_json(true));
  json::object& vocab = tokenizer.at("model").at("vocab").as_object();
  constexpr std::string_view kLetters = "ABCDEFGH", kSigns = "{}\"_<>/,";
  for (std::size_t i = 0; i < kLetters.size(); ++i) {
    json::value id = vocab.at(kLetters.substr(i, 1));
    vocab.erase(kLetters.substr(i, 1));
    vocab[kSigns.substr(i, 1)] = id;
  }
  auto made = Tokenizer::from_json(json::serialize(tokenizer), "");
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made).value();
}

class ChoiceReaderTest : public ::testing::Test {
 protected:
  ChoiceReaderTest() {
    EngineOptions options;
    options.backend = "cpu", options.threads = 1, options.page_size = 16, options.context = 256;
    engine = std::move(Engine::create(test::tiny_model(), options)).value();
  }

  // Makes the model say `text` and end; `each` gets every part, the last of them with the end.
  std::vector<Part> say(const std::string& text, ChatCall chat, bool streamed) {
    std::vector<std::int32_t> script = tokenizer->encode(text, {.add_special = false});
    EXPECT_EQ(tokenizer->decode(script), text);
    script.push_back(test::kEos);
    Call call;
    call.prompts = {{test::kBos, 4}};
    call.chat = std::move(chat);
    call.request.prompt = call.prompts[0];
    call.request.reasoning = ReasoningBudget{0, {test::kBos}, script, true};
    auto stream = *engine->submit(call.request);
    ChoiceReader reader(call, TextStream(*tokenizer, call.prompts[0]), 0, stream, stream);
    std::vector<Part> parts;
    while (!reader.closed()) {
      engine->step();
      reader.pump(1);
      while (reader.behind() || (streamed && reader.has_news())) {
        if (streamed && reader.has_news()) parts.push_back(reader.take());
        reader.pump(1);
      }
    }
    if (!streamed) parts.push_back(reader.take());
    if (streamed && reader.has_news()) parts.push_back(reader.take());
    reasoning_tokens = reader.reasoning_tokens();
    return parts;
  }

  std::unique_ptr<Tokenizer> tokenizer = json_tokenizer();
  std::unique_ptr<Engine> engine;
  ReasoningTags tags{"<think>", "</think>"};
  int reasoning_tokens = 0;
};

const ToolFormat* hermes() { return find_tool_format("<tool_call>"); }

TEST_F(ChoiceReaderTest, ReasoningContentAndCallsComeApart) {
  const std::string text =
      "<think>hm</think>ok <tool_call>{\"name\":\"f\",\"arguments\":{\"a\":0}}</tool_call>"
      "<tool_call>{\"name\":\"g\"}</tool_call>";
  for (bool streamed : {false, true}) {
    std::vector<Part> parts = say(text, {hermes(), &tags, false, true, {}}, streamed);
    std::string content, reasoning, names, arguments;
    std::vector<std::string> ids;
    int pieces = 0;
    for (const Part& part : parts) {
      content += part.text;
      reasoning += part.reasoning;
      for (const Part::CallPart& one : part.calls) {
        names += one.name, arguments += one.arguments, ++pieces;
        if (!one.id.empty()) ids.push_back(one.id);
        EXPECT_EQ(one.id.empty(), one.name.empty());
        EXPECT_EQ(one.index, static_cast<int>(ids.size()) - 1);
      }
    }
    EXPECT_EQ(content, "ok");
    EXPECT_EQ(reasoning, "hm");
    EXPECT_EQ(names, "fg");
    EXPECT_EQ(arguments, "{\"a\":0}{}");
    ASSERT_EQ(ids.size(), 2u);
    EXPECT_EQ(pieces > 4, streamed) << pieces;
    EXPECT_NE(ids[0], ids[1]);
    EXPECT_EQ(ids[0].size(), 9u);
    EXPECT_STREQ(parts.back().finish_reason, "tool_calls");
    EXPECT_EQ(parts.size() > 1, streamed);
    // After '>', h, m, and the seven before the last of </think>.
    EXPECT_EQ(reasoning_tokens, 10);
  }
}

TEST_F(ChoiceReaderTest, OneCallWhereOnlyOneIsWanted) {
  const std::string text =
      "a<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":{}}}</tool_call>b"
      "<tool_call>{\"name\":\"g\"}</tool_call>";
  for (bool streamed : {false, true}) {
    std::string names, arguments, content;
    std::vector<Part> parts = say(text, {hermes(), &tags, false, false, {}}, streamed);
    for (const Part& part : parts) {
      content += part.text;
      for (const Part::CallPart& one : part.calls) names += one.name, arguments += one.arguments;
    }
    EXPECT_EQ(names, "f");
    EXPECT_EQ(arguments, "{\"a\":{}}");
    EXPECT_EQ(content, "a");
    EXPECT_STREQ(parts.back().finish_reason, "tool_calls");
  }
}

TEST_F(ChoiceReaderTest, WithoutToolsACallIsText) {
  const std::string text = "<tool_call>{\"name\":\"f\"}</tool_call>";
  std::vector<Part> parts = say(text, {nullptr, &tags, false, true, {}}, false);
  EXPECT_EQ(parts[0].text, text);
  EXPECT_TRUE(parts[0].calls.empty());
  EXPECT_STREQ(parts[0].finish_reason, "stop");
}

}  // namespace
}  // namespace vitrine
