// Commands on a model with a tokenizer: text in, text out.
#include <algorithm>

#include "cli/program.h"

namespace vitrine::test {
namespace {

using ::testing::HasSubstr;

const std::string kLlama = fixture("llama");

class WithTokenizer : public ::testing::Test {
 protected:
  WithTokenizer() {
    model_.copy_from(kLlama);
    model_.write("tokenizer.json", tiny_tokenizer());
    bare_.write("tokenizer.json", tiny_tokenizer());
  }
  TempFolder model_, bare_;  // a model with a tokenizer, and the tokenizer alone
};

TEST_F(WithTokenizer, Tokenizes) {
  for (const std::string& path : {model_.path(), bare_.path(), bare_.path("tokenizer.json")}) {
    SCOPED_TRACE(path);
    auto ids = [&](std::vector<std::string> more) {
      std::vector<std::string> args{"tokenize", path, "--text"};
      args.insert(args.end(), more.begin(), more.end());
      return join(json::value_to<std::vector<std::int32_t>>(vitrine_json(args).at("ids")));
    };
    // Letters are 9.., then the bytes of é, then the merges from 37 on: he ll hell hello Ġhello.
    EXPECT_EQ(ids({"hello hello"}), "1,40,41");
    EXPECT_EQ(ids({"hello hello", "--no-special"}), "40,41");
    EXPECT_EQ(ids({"", "--no-special"}), "");
    EXPECT_EQ(ids({"é", "--no-special"}), "35,36");
    EXPECT_EQ(ids({"</s>", "--no-special"}), "6,8,27,7");
    EXPECT_EQ(ids({"</s>", "--no-special", "--parse-special"}), "2");
  }
  json::object a = vitrine_json({"tokenize", model_.path(), "--text", "hello ab"});
  EXPECT_EQ(json::serialize(a.at("pieces")), R"(["<s>","hello"," ","a","b"])");
  Exit e = vitrine({"tokenize", model_.path(), "--text", "hello"});
  EXPECT_EQ(e.code, 0);
  EXPECT_THAT(e.out, HasSubstr("40  \"hello\""));
}

TEST_F(WithTokenizer, Detokenizes) {
  auto text = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"detokenize", bare_.path()});
    return std::string(vitrine_json(args).at("text").as_string());
  };
  EXPECT_EQ(text({"--ids", "40,41,35,36"}), "hello helloé");
  EXPECT_EQ(text({"--ids", "1,40,2"}), "<s>hello</s>");
  EXPECT_EQ(text({"--ids", "1,40,2", "--skip-special"}), "hello");
  EXPECT_EQ(text({"--ids", "35"}), "\xEF\xBF\xBD");
  EXPECT_EQ(vitrine({"detokenize", bare_.path(), "--ids", "40"}).out, "hello\n");
  for (const char* id : {"64", "-1"})
    expect_refused({"detokenize", bare_.path(), "--ids", id}, {"--ids", id, "63"});
  expect_refused({"detokenize", bare_.path(), "--ids", "x"}, {"--ids", "x"});
}

TEST_F(WithTokenizer, ModelWithoutOneSaysSo) {
  expect_refused({"tokenize", kLlama, "--text", "a"}, {"tokenizer"});
  expect_refused({"detokenize", kLlama, "--ids", "5"}, {"tokenizer"});
  expect_refused({"generate", bare_.path(), "--ids", "5"}, {"config.json"});
}

TEST_F(WithTokenizer, GeneratesText) {
  std::vector<std::string> flags{"--max-tokens", "12", "--temperature", "0", "--ignore-eos"};
  std::vector<std::string> args{"generate", model_.path(), "--prompt", "hello world"};
  args.insert(args.end(), flags.begin(), flags.end());
  json::object a = vitrine_json(args);
  ASSERT_TRUE(a.at("text").is_string());
  // <s> hello Ġw or l d
  EXPECT_EQ(a.at("usage").at("prompt_tokens").to_number<int>(), 6);
  Exit plain = vitrine(args);
  EXPECT_EQ(plain.out, std::string(a.at("text").as_string()) + "\n");
  // The same prompt as ids gives the same tokens, and their text is what detokenize says.
  std::vector<std::string> by_ids{"generate", model_.path(), "--ids", "1,40,42,43,20,12"};
  by_ids.insert(by_ids.end(), flags.begin(), flags.end());
  EXPECT_EQ(tokens_of(vitrine_json(by_ids)), tokens_of(a));
  // `run` chats: what the template makes of the prompt, generated raw, is the same.
  Exit shown = vitrine({"template", model_.path(), "--prompt", "hello world", "--json"});
  EXPECT_THAT(shown.err, HasSubstr("brings no chat template"));
  json::object chat = json::parse(shown.out).as_object();
  EXPECT_EQ(chat.at("template").as_string(), "built in (ChatML)");
  EXPECT_THAT(std::string(chat.at("prompt").as_string()),
              testing::EndsWith("user\nhello world<|im_end|>\n<|im_start|>assistant\n"));
  std::vector<std::string> as_ids;
  for (const json::value& id : chat.at("tokens").as_array())
    as_ids.push_back(std::to_string(id.to_number<int>()));
  by_ids[3] = fmt::format("{}", fmt::join(as_ids, ","));
  by_ids.insert(by_ids.end(), {"--stop", "<|im_end|>"});
  plain.out = std::string(vitrine_json(by_ids).at("text").as_string()) + "\n";
  // A prompt as an argument, or from a pipe.
  for (bool piped : {false, true}) {
    std::vector<std::string> run{"run", model_.path()};
    if (!piped) run.push_back("hello world");
    run.insert(run.end(), flags.begin(), flags.end());
    Exit e = vitrine(run, piped ? "hello world" : "");
    EXPECT_EQ(e.code, 0) << e.err;
    EXPECT_EQ(e.out, plain.out);
    EXPECT_THAT(e.err, HasSubstr("tok/s"));
    EXPECT_THAT(e.err, HasSubstr("12 tokens"));
  }
}

TEST_F(WithTokenizer, ChatTemplatesFromFilesAndFlags) {
  auto prompt = [&](std::vector<std::string> more) {
    std::vector<std::string> args{"template", model_.path(), "--prompt", "hello"};
    args.insert(args.end(), more.begin(), more.end());
    Exit e = vitrine(args);
    EXPECT_EQ(e.code, 0) << e.err;
    return e.out;
  };
  model_.write("tokenizer_config.json",
               R"({"bos_token": "<s>", "chat_template": [
                  {"name": "default", "template": "{{ bos_token }}[{{ messages[0].content }}]"},
                  {"name": "tool_use", "template": "tools:{{ tools|length }}"}]})");
  EXPECT_EQ(prompt({}), "<s>[hello]");
  EXPECT_EQ(prompt({"--tools", R"([{"type":"function","function":{"name":"f"}}])"}), "tools:1");
  json::object a = vitrine_json({"template", model_.path(), "--prompt", "a<s>", "--json"});
  std::vector<int> ids;
  for (const json::value& id : a.at("tokens").as_array()) ids.push_back(id.to_number<int>());
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 1), 1);  // <s> once: the template's
  model_.write("chat_template.jinja", "{{ x|default('no x') }} {{ messages[-1].content }}");
  EXPECT_EQ(prompt({}), "no x hello");
  EXPECT_EQ(prompt({"--kwargs", R"({"x": 5})"}), "5 hello");
  model_.write("mine.jinja", "{% for m in messages %}{{ m.role }};{% endfor %}");
  EXPECT_EQ(prompt({"--system", "s", "--chat-template", model_.path("mine.jinja")}),
            "system;user;");
  expect_refused({"template", model_.path(), "--kwargs", R"({"messages": 5})"}, {"messages"});
  model_.write("chat_template.jinja", "{{ raise_exception('never') }}");
  expect_refused({"template", model_.path()}, {"never"});
  expect_refused({"run", model_.path(), "hello"}, {"never"});
  model_.write("chat_template.jinja", "\n{% if %}");
  expect_refused({"template", model_.path()}, {"chat_template.jinja", "line 2, column 7"});
}

TEST_F(WithTokenizer, Embeds) {
  json::object a = vitrine_json({"embed", model_.path(), "hello", "hello ab"});
  EXPECT_EQ(a.at("pooling"), "mean");
  EXPECT_EQ(a.at("tokens"), 2 + 5);
  ASSERT_EQ(a.at("data").as_array().size(), 2u);
  auto vector = [](const json::value& one) {
    return json::value_to<std::vector<double>>(one.at("embedding"));
  };
  double squares = 0;
  for (double x : vector(a.at("data").at(1))) squares += x * x;
  EXPECT_NEAR(squares, 1, 1e-5);
  // A line of JSON for each line of the input, in order.
  model_.write("texts", "hello\r\nhello ab\n");
  for (const Exit& e : {vitrine({"embed", model_.path(), "--file", model_.path("texts")}),
                        vitrine({"embed", model_.path()}, "hello\nhello ab")}) {
    EXPECT_EQ(e.code, 0) << e.err;
    std::size_t end = e.out.find('\n');
    EXPECT_EQ(vector(json::parse(e.out.substr(0, end))), vector(a.at("data").at(0)));
    EXPECT_EQ(vector(json::parse(e.out.substr(end + 1))), vector(a.at("data").at(1)));
  }
  json::object ids = vitrine_json({"embed", model_.path(), "--ids", "1,40"});
  EXPECT_EQ(vector(ids.at("data").at(0)), vector(a.at("data").at(0)));
  json::object last =
      vitrine_json({"embed", model_.path(), "hello", "--pooling", "last", "--dimensions", "3"});
  EXPECT_EQ(last.at("pooling"), "last");
  EXPECT_EQ(vector(last.at("data").at(0)).size(), 3u);
  EXPECT_EQ(vitrine({"embed", model_.path(), "a", "--pooling", "cls"}).code, 2);
  expect_refused({"embed", model_.path(), "a", "--dimensions", "4096"}, {"--dimensions", "4096"});
  EXPECT_EQ(vitrine({"embed", model_.path(), "a", ""}).code, 2);
  expect_refused({"embed", model_.path(), "--file", "no/such"}, {"no/such"});
  expect_refused({"embed", kLlama, "a"}, {"tokenizer"});
}

TEST_F(WithTokenizer, ParsesSpecialTokensOnlyWhenAsked) {
  auto prompt_tokens = [&](std::vector<std::string> more) {
    std::vector<std::string> args{"generate", model_.path(), "--prompt", "</s>", "-n", "1"};
    args.insert(args.end(), more.begin(), more.end());
    return vitrine_json(args).at("usage").at("prompt_tokens").to_number<int>();
  };
  EXPECT_EQ(prompt_tokens({}), 5);
  EXPECT_EQ(prompt_tokens({"--parse-special"}), 2);
}

TEST_F(WithTokenizer, BrokenOneIsAnErrorWhereItIsNeeded) {
  model_.write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": 5}})");
  expect_refused({"tokenize", model_.path(), "--text", "a"}, {"vocab"});
  expect_refused({"generate", model_.path(), "--prompt", "a"}, {"vocab"});
  json::object a = vitrine_json({"inspect", model_.path()});
  EXPECT_TRUE(a.at("tokenizer").is_null());
  EXPECT_THAT(std::string(a.at("tokenizer_error").as_string()), HasSubstr("vocab"));
  EXPECT_TRUE(a.at("memory").is_object());
}

}  // namespace
}  // namespace vitrine::test
