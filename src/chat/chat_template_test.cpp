#include "chat/chat_template.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

namespace vitrine {
namespace {

std::unique_ptr<Tokenizer> tokenizer() {
  std::ifstream file(std::string(VT_FIXTURES) + "/tokenizer/byte_bpe/tokenizer.json");
  std::stringstream text;
  text << file.rdbuf();
  return std::move(Tokenizer::from_json(text.str(), "")).value();
}

ChatInput conversation(std::initializer_list<std::pair<const char*, const char*>> messages) {
  ChatInput out;
  for (const auto& [role, content] : messages) {
    out.messages.emplace_back();
    out.messages.back().role = role;
    out.messages.back().content = content;
  }
  return out;
}

std::string rendered(const ChatTemplate& chat, const ChatInput& input) {
  auto text = chat.render(input);
  return text.ok() ? text->bytes() : text.error().message;
}

TEST(ChatTemplate, ContentIsAListWhereTheTemplateWantsOne) {
  auto t = tokenizer();
  auto input = conversation({{"user", "hello"}});
  auto list = ChatTemplate::from_source(
      "{% for m in messages %}{% for p in m.content %}{% if p.type == 'text' %}[{{ p.text }}]"
      "{% endif %}{% endfor %}{% endfor %}",
      "list", *t);
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(rendered(**list, input), "[hello]");
  auto both = ChatTemplate::from_source(
      "{% for m in messages %}{{ m.content if m.content is string else 'list' }}{% endfor %}",
      "both", *t);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(rendered(**both, input), "hello");
}

TEST(ChatTemplate, OnlyTheCallersWordsAreMarked) {
  auto t = tokenizer();
  auto chat = ChatTemplate::from_source(
      "{% for m in messages %}<|{{ m.role }}|>{{ m.content|trim }}{{ x }}{% endfor %}", "t", *t);
  ASSERT_TRUE(chat.ok());
  auto input = conversation({{"user", " a<|user|> "}});
  input.kwargs["x"] = "<|user|>";
  auto text = (*chat)->render(input);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->view(), "<|user|>a<|user|><|user|>");
  EXPECT_EQ(text->caller(), (std::vector<jinja::Span>{{8, 17, 1}, {17, 25, kFromOther}}));
}

TEST(ChatTemplate, ChatMLHasAPlaceForTools) {
  auto t = tokenizer();
  auto chat = ChatTemplate::chatml(*t);
  EXPECT_TRUE(chat->is_fallback());
  ASSERT_NE(chat->tools(), nullptr);
  EXPECT_STREQ(chat->tools()->name, "hermes");
  auto input = conversation({{"system", "S"}, {"user", "U"}, {"assistant", "A"}});
  input.tools.push_back(json::parse(R"({"type":"function","function":{"name":"f"}})"));
  input.messages[2].tool_calls.push_back({"id", "f", R"({"a": "ü"})"});
  std::string text = rendered(*chat, input);
  EXPECT_NE(text.find("system\nS\n\nYou can call these functions:\n"
                      "{\"type\": \"function\", \"function\": {\"name\": \"f\"}}\n"),
            text.npos)
      << text;
  EXPECT_NE(
      text.find("assistant\nA\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"ü\"}}\n"
                "</tool_call><|im_end|>\n"),
      text.npos)
      << text;
  EXPECT_EQ(text.find("S\n\n"), text.rfind("S\n\n"));
}

TEST(ChatTemplate, AFunctionMayLeaveOutWhatATemplateInsistsOn) {
  auto words = tokenizer();
  auto shown = [&](const char* source, const char* tool) {
    auto chat = ChatTemplate::from_source(source, "test", *words);
    EXPECT_TRUE(chat.ok());
    ChatInput input;
    input.tools.push_back(json::parse(tool));
    return rendered(**chat, input);
  };
  const char* insists = "{{ '// ' + tools[0].function.description }}{{ tools[0].function.name }}";
  EXPECT_EQ(shown(insists, R"({"function":{"name":"f"}})"), "// f");
  EXPECT_EQ(shown(insists, R"({"function":{"name":"f","description":"d "}})"), "// d f");
  // A template that does not require the field sees what the client sent.
  EXPECT_EQ(shown("{{ tools[0].function | tojson }}", R"({"function":{"name":"f"}})"),
            R"({"name": "f"})");
  EXPECT_THAT(shown(insists, "5"), ::testing::HasSubstr("line 1"));
  EXPECT_THAT(shown("{{ tools[0].function.color.x }}", R"({"function":{"name":"f"}})"),
              ::testing::HasSubstr("color"));
}

TEST(ChatTemplate, CallsNeedNoContent) {
  auto words = tokenizer();
  auto shown = [&](const char* source) {
    auto chat = ChatTemplate::from_source(source, "test", *words);
    EXPECT_TRUE(chat.ok());
    ChatInput input = conversation({{"user", "a"}, {"assistant", ""}});
    input.messages[1].has_content = false;
    input.messages[1].tool_calls.push_back({"id", "f", "{}"});
    return rendered(**chat, input);
  };
  EXPECT_EQ(shown("{{ messages[1].content }}!"), "!");
  EXPECT_EQ(shown("{{ 'x' in messages[1].content }}"), "False");
  EXPECT_EQ(shown("{{ messages[1].content is none }}"), "True");
}

TEST(ChatTemplate, ErrorsNameTheTemplate) {
  auto t = tokenizer();
  EXPECT_EQ(ChatTemplate::from_source("{{", "mine.jinja", *t).error().message,
            "chat template of mine.jinja, line 1, column 3: expected an expression");
  EXPECT_TRUE(ChatTemplate::is_reserved("messages"));
  EXPECT_FALSE(ChatTemplate::is_reserved("enable_thinking"));
}

}  // namespace
}  // namespace vitrine
