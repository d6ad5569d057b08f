#include "chat/prompt_spans.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

namespace vitrine {
namespace {

constexpr const char* kKinds[] = {"byte_bpe", "spm_bpe", "unigram", "wordpiece"};

std::unique_ptr<Tokenizer> tokenizer(const std::string& kind) {
  std::ifstream file(std::string(VT_FIXTURES) + "/tokenizer/" + kind + "/tokenizer.json");
  std::stringstream text;
  text << file.rdbuf();
  return std::move(Tokenizer::from_json(text.str(), "")).value();
}
std::string first_special(const Tokenizer& tokenizer) {
  for (std::int32_t id = 0;; ++id)
    if (tokenizer.is_special(id) && id != tokenizer.unk()) return tokenizer.piece(id);
}
ChatMessage message(const char* role, std::string content) {
  ChatMessage out;
  out.role = role, out.content = std::move(content);
  return out;
}

// "kind:message[text]" for each span.
std::string shown(const PromptSpans& spans, std::string_view text) {
  std::string out;
  for (const PromptSpan& span : spans.bytes)
    out += fmt::format("{}:{}[{}] ", span_kind_name(span.kind), span.message,
                       text.substr(span.begin, span.end - span.begin));
  return out;
}

class Spans : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Spans, testing::ValuesIn(kKinds));

TEST_P(Spans, SayWhoseEveryByteAndTokenIs) {
  auto words = tokenizer(GetParam());
  const std::string mark = first_special(*words);
  auto chat = ChatTemplate::from_source("{% for m in messages %}" + mark +
                                            "{{ m.role }}: {{ m.content | trim }}\n{% endfor %}" +
                                            "{{ x }}{{ tools[0].function.name }}",
                                        "t", *words);
  ASSERT_TRUE(chat.ok()) << chat.error().message;
  ChatInput input;
  input.messages = {message("system", "the cat"), message("user", " she " + mark + " sells 🦊 "),
                    message("assistant", "שלום"), message("tool", "the end")};
  input.kwargs["x"] = "the";
  input.tools.push_back(json::parse(R"({"type":"function","function":{"name":"shells"}})"));
  auto prompt = (*chat)->prompt(input);
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  auto spans = prompt_spans(*prompt, input.messages, *words);
  ASSERT_TRUE(spans.ok()) << spans.error().message;
  const std::string_view text = prompt->text.view();
  EXPECT_EQ(shown(*spans, text),
            fmt::format("special:-1[{0}] template:-1[system: ] system:0[the cat] template:-1[\n] "
                        "special:-1[{0}] template:-1[user: ] user:1[she {0} sells 🦊] "
                        "template:-1[\n] special:-1[{0}] template:-1[assistant: ] "
                        "assistant:2[שלום] template:-1[\n] special:-1[{0}] template:-1[tool: ] "
                        "tool:3[the end] template:-1[\n] other:-1[the] tool:-1[shells] ",
                        mark));
  // Partitions.
  std::size_t at = 0;
  for (const PromptSpan& span : spans->bytes) EXPECT_EQ(span.begin, std::exchange(at, span.end));
  EXPECT_EQ(at, text.size());
  at = 0;
  for (const PromptSpan& span : spans->tokens) EXPECT_EQ(span.begin, std::exchange(at, span.end));
  EXPECT_EQ(at, prompt->ids.size());
  ASSERT_EQ(spans->places.size(), prompt->ids.size());
  // A token is special where its span says so; each message has tokens of its own.
  std::vector<int> of_message(4);
  for (const PromptSpan& span : spans->tokens) {
    if (span.message >= 0) of_message[static_cast<std::size_t>(span.message)] += 1;
    for (std::size_t i = span.begin; i < span.end; ++i) {
      const bool special = prompt->ids[i] == *words->find(mark);
      EXPECT_EQ(special, span.kind == SpanKind::kSpecial) << i;
    }
  }
  EXPECT_THAT(of_message, testing::Each(testing::Ge(1)));
}

TEST(PromptSpans, AreBounded) {
  auto words = tokenizer("byte_bpe");
  auto chat = ChatTemplate::chatml(*words);
  ChatInput input;
  input.messages = {message("user", std::string(Tokenizer::kMostPlaced, 'a'))};
  auto prompt = chat->prompt(input);
  ASSERT_TRUE(prompt.ok());
  auto spans = prompt_spans(*prompt, input.messages, *words);
  ASSERT_FALSE(spans.ok());
  EXPECT_EQ(spans.error().code, ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace vitrine
