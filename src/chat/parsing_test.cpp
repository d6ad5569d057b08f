// Every sample, cut at every position and into single bytes, gives the same answer.
#include "chat/parsing.h"

#include <gtest/gtest.h>

namespace vitrine {
namespace {

struct Sample {
  const char* format;
  const char* text;
  const char* content;
  const char* reasoning;
  std::vector<std::pair<const char*, const char*>> calls;  // name, arguments
  bool in_reasoning = false;
};

const ReasoningTags kThink{"<think>", "</think>"};

const std::vector<Sample>& samples() {
  static const std::vector<Sample> kAll = {
      {"", "just text", "just text", "", {}},
      {"", "<think>\nwhy\nnot\n</think>\n\nanswer </think>", "answer </think>", "why\nnot", {}},
      {"", "why\n</think>\n\nanswer", "answer", "why", {}, true},
      {"", " <thin", " <thin", "", {}},
      {"", "<think>never ends ", "", "never ends", {}},
      {"", "text <think>x</think>", "text <think>x</think>", "", {}},
      {"hermes",
       "Let me look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
       "Let me look.",
       "",
       {{"f", "{\"a\": 1}"}}},
      {"hermes",
       "<think>hm</think><tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n"
       "<tool_call>{\"name\":\"g\",\"arguments\":\"{}\"}</tool_call>\n bye ",
       "bye ",
       "hm",
       {{"f", "{}"}, {"g", "{}"}}},
      {"hermes", "<tool_call>not json</tool_call> x", "<tool_call>not json</tool_call> x", "", {}},
      {"hermes",
       "<tool_call>{\"name\": \"f\", \"arg",
       "<tool_call>{\"name\": \"f\", \"arg",
       "",
       {}},
      {"hermes", "<tool_call>{\"name\": \"f\"}", "", "", {{"f", "{}"}}},
      {"hermes", "a < b <tool_ c </tool_call> d", "a < b <tool_ c </tool_call> d", "", {}},
      {"hermes",
       "<tool_call>\n<function=f>\n<parameter=city>\nZürich\n</parameter>\n<parameter=n>\n3\n"
       "</parameter>\n</function>\n</tool_call>",
       "",
       "",
       {{"f", "{\"city\":\"Zürich\",\"n\":3}"}}},
      {"llama3",
       "{\"name\": \"f\", \"parameters\": {\"q\": \"x}\\\"\"}}",
       "",
       "",
       {{"f", "{\"q\": \"x}\\\"\"}"}}},
      {"llama3",
       "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {}}",
       "",
       "",
       {{"f", "{}"}, {"g", "{}"}}},
      {"llama3",
       "<|python_tag|>brave_search.call(query=\"a, b\", n=3)",
       "",
       "",
       {{"brave_search", "{\"query\":\"a, b\",\"n\":3}"}}},
      {"llama3",
       "I run it. <|python_tag|>print(1)\n",
       "I run it. ",
       "",
       {{"code_interpreter", "{\"code\":\"print(1)\"}"}}},
      {"llama3", "{\"name\": 5}", "{\"name\": 5}", "", {}},
      {"llama3", "{ not json", "{ not json", "", {}},
      {"llama3",
       "plain {\"name\": \"f\", \"parameters\": {}}",
       "plain {\"name\": \"f\", \"parameters\": {}}",
       "",
       {}},
      {"mistral",
       "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": [1]}}, {\"name\": \"g\"}]",
       "",
       "",
       {{"f", "{\"a\": [1]}"}, {"g", "{}"}}},
      {"mistral",
       "Sure. [TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g[CALL_ID]123[ARGS]{}",
       "Sure.",
       "",
       {{"f", "{\"a\": 1}"}, {"g", "{}"}}},
      {"mistral_args",
       "[TOOL_CALLS]get_time[ARGS]{\"zone\": \"[ARGS]\"}[TOOL_CALLS]g[ARGS]{}",
       "",
       "",
       {{"get_time", "{\"zone\": \"[ARGS]\"}"}, {"g", "{}"}}},
      {"mistral_args",
       "<think>hm</think>I look.[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}}]",
       "I look.",
       "hm",
       {{"f", "{\"a\": 1}"}}},
      {"mistral", "[TOOL_CALLS] nonsense", "[TOOL_CALLS] nonsense", "", {}},
      {"deepseek",
       "Look.\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\":"
       " 1}\n"
       "```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n"
       "```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "Look.",
       "",
       {{"f", "{\"a\": 1}"}, {"g", "{}"}}},
      {"deepseek_v31",
       "why</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": "
       "1}<｜tool▁call▁end｜>"
       "<｜tool▁calls▁end｜>",
       "",
       "why",
       {{"f", "{\"a\": 1}"}},
       true},
      {"harmony",
       "<|channel|>analysis<|message|>I think.<|end|><|start|>assistant<|channel|>final<|message|>"
       "Hello<|return|>",
       "Hello",
       "I think.",
       {}},
      {"harmony",
       "<|channel|>analysis<|message|>Use it<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>",
       "",
       "Use it",
       {{"f", "{\"a\": 1}"}}},
      // As far as it came.
      {"hermes",
       "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [1, \"x",
       "",
       "",
       {{"f", "{\"a\": [1, \"x"}}},
      // The tag in a string is text; the object's other members do not matter.
      {"hermes",
       "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"</tool_call>\\\"}\"}, \"id\": "
       "{\"x\": 1}}"
       "</tool_call>ok",
       "ok",
       "",
       {{"f", "{\"a\": \"</tool_call>\\\"}\"}"}}},
      // One bracket too many, or too few.
      {"hermes",
       "<tool_call>{\"name\": \"f\", \"arguments\": {}}}</tool_call>"
       "<tool_call>{\"name\": \"g\", \"arguments\": {\"a\": 1}</tool_call>"
       "<tool_call>{\"name\": \"h\", \"arguments\": {\"a\": 1</tool_call> x",
       "x",
       "",
       {{"f", "{}"}, {"g", "{\"a\": 1}"}, {"h", "{\"a\": 1"}}},
      // Another order of members, and arguments that are no object.
      {"hermes",
       "<tool_call>{\"arguments\": {\"a\": 1}, \"name\": \"f\"}</tool_call>"
       "<tool_call>{\"name\": \"g\\u0041\", \"arguments\": \"{\\\"b\\\": 2}\"}</tool_call>"
       "<tool_call>{\"name\": \"h\\u0041\", \"arguments\": {}}</tool_call>",
       "",
       "",
       {{"f", "{\"a\":1}"}, {"gA", "{\"b\": 2}"}, {"hA", "{}"}}},
      {"llama3",
       "{\"name\": \"f\", \"parameters\": {}}; {\"parameters\": {\"b\": 1}, \"name\": \"g\"}",
       "",
       "",
       {{"f", "{}"}, {"g", "{\"b\":1}"}}},
      {"llama3", "{\"name\": \"f\", \"parameters\": {}} and text", " and text", "", {{"f", "{}"}}},
      {"llama3", "{\"a\": {\"name\": \"f\"}}", "{\"a\": {\"name\": \"f\"}}", "", {}},
      {"llama3", "[{\"a\": {}}]", "[{\"a\": {}}]", "", {}},
      {"llama3",
       "<|python_tag|>[{\"name\": \"f\", \"parameters\": {}}, {\"a\": {}, \"name\": \"g\"}]",
       "",
       "",
       {{"f", "{}"}, {"g", "{}"}}},
      {"mistral",
       "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": {\"b\": [{}]}}}, {\"arguments\": "
       "{}, "
       "\"name\": \"g\"}]",
       "",
       "",
       {{"f", "{\"a\": {\"b\": [{}]}}"}, {"g", "{}"}}},
      {"mistral",
       "[TOOL_CALLS]f[ARGS] {\"a\": \"[1}\"} and[TOOL_CALLS]g[ARGS]{\"b\"",
       "and",
       "",
       {{"f", "{\"a\": \"[1}\"}"}, {"g", "{\"b\""}}},
      {"mistral", "[TOOL_CALLS]f[ARGS]x", "[TOOL_CALLS]f[ARGS]x", "", {}},
      {"mistral", "[TOOL_CALLS][{\"a\": {}}]", "[TOOL_CALLS][{\"a\": {}}]", "", {}},
      {"deepseek",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": "
       "\"```\"",
       "",
       "",
       {{"f", "{\"a\": \"```\""}}},
      {"deepseek",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\nno<｜tool▁call▁end｜>",
       "functionf\nno",
       "",
       {}},
      {"harmony",
       "<|channel|>commentary to=functions.f<|message|> {\"a\":\n1} <|call|><|start|>assistant"
       "<|channel|>commentary to=functions.g<|message|><|call|>",
       "",
       "",
       {{"f", "{\"a\":\n1}"}, {"g", "{}"}}},
      {"harmony", "no channels here", "no channels here", "", {}},
      // A marker in a string is text.
      {"mistral_args",
       "[TOOL_CALLS]f[ARGS]{\"a\": \"[TOOL_CALLS]g[ARGS]\"}[TOOL_CALLS]h[ARGS]{}",
       "",
       "",
       {{"f", "{\"a\": \"[TOOL_CALLS]g[ARGS]\"}"}, {"h", "{}"}}},
      {"mistral",
       "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": \"\\\"[TOOL_CALLS]\"}}]",
       "",
       "",
       {{"f", "{\"a\": \"\\\"[TOOL_CALLS]\"}"}}},
      {"deepseek",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": \"<｜tool▁call▁end｜>\"}"
       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "",
       "",
       {{"f", "{\"a\": \"<｜tool▁call▁end｜>\"}"}}},
      {"harmony",
       "<|channel|>commentary to=functions.f<|message|>{\"a\": \"<|end|> \\\" <|start|>\"}<|call|>",
       "",
       "",
       {{"f", "{\"a\": \"<|end|> \\\" <|start|>\"}"}}},
      {"harmony",
       "<|channel|>commentary to=python code<|message|>print(\"<|end|><|start|>assistant<|channel|>"
       "final<|message|>ok<|return|>",
       "ok",
       "",
       {{"python", "print(\""}}},
  };
  return kAll;
}

const ToolFormat* format_named(std::string_view name) {
  for (const ToolFormat* format : all_tool_formats())
    if (format->name == name) return format;
  return nullptr;
}

ChatOutput parse(const Sample& sample, const std::vector<std::size_t>& cuts) {
  auto parser = make_parser(format_named(sample.format), &kThink, sample.in_reasoning);
  ChatOutput out;
  std::string_view text = sample.text;
  std::size_t done = 0;
  for (std::size_t cut : cuts) {
    parser->push(text.substr(done, cut - done), out);
    done = cut;
  }
  parser->push(text.substr(done), out);
  parser->finish(out);
  return out;
}

void expect_right(const Sample& sample, const ChatOutput& out) {
  EXPECT_EQ(out.content, sample.content) << sample.text;
  EXPECT_EQ(out.reasoning, sample.reasoning) << sample.text;
  ASSERT_EQ(out.calls.size(), sample.calls.size()) << sample.text;
  for (std::size_t i = 0; i < out.calls.size(); ++i) {
    EXPECT_EQ(out.calls[i].name, sample.calls[i].first) << sample.text;
    EXPECT_EQ(out.calls[i].arguments, sample.calls[i].second) << sample.text;
  }
}

TEST(AnswerParser, GivesTheSameForEveryCut) {
  for (const Sample& sample : samples()) {
    std::size_t size = std::string_view(sample.text).size();
    expect_right(sample, parse(sample, {}));
    std::vector<std::size_t> bytes;
    for (std::size_t i = 0; i <= size; ++i) {
      expect_right(sample, parse(sample, {i}));
      bytes.push_back(i);
      for (std::size_t j = i; j <= size; j += 7) expect_right(sample, parse(sample, {i, j}));
    }
    expect_right(sample, parse(sample, bytes));
    if (testing::Test::HasFailure()) return;
  }
}

// The pieces of a call, each as soon as it is certain.
TEST(AnswerParser, ArgumentsComeAsTheyAreWritten) {
  const std::string arguments = "{\"city\": \"Zürich\", \"days\": [1, 2]}";
  const std::pair<const char*, std::string> kTexts[] = {
      {"hermes", "<tool_call>\n{\"name\": \"f\", \"arguments\": " + arguments + "}\n</tool_call>"},
      {"llama3", "{\"name\": \"f\", \"parameters\": " + arguments + "}"},
      {"mistral", "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": " + arguments + "}]"},
      {"mistral_args", "[TOOL_CALLS]f[ARGS]" + arguments},
      {"deepseek", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n" +
                       arguments + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
      {"harmony", "<|channel|>commentary to=functions.f <|constrain|>json<|message|>" + arguments +
                      "<|call|>"},
  };
  for (const auto& [format, text] : kTexts) {
    auto parser = make_parser(format_named(format), &kThink, false);
    std::string got;
    int begins = 0, ends = 0, pieces = 0;
    for (char c : text) {
      ChatOutput out;
      parser->push(std::string_view(&c, 1), out);
      for (const CallPiece& piece : out.calls) {
        begins += piece.begins, ends += piece.ends;
        EXPECT_EQ(piece.name, piece.begins ? "f" : "");
        EXPECT_EQ(begins, 1);
        got += piece.arguments;
        ++pieces;
      }
      EXPECT_EQ(out.content, "");
    }
    ChatOutput rest;
    parser->finish(rest);
    for (const CallPiece& piece : rest.calls) got += piece.arguments, ends += piece.ends;
    EXPECT_EQ(got, arguments) << format;
    EXPECT_EQ(ends, 1) << format;
    EXPECT_GT(pieces, 20) << format;
  }
}

TEST(AnswerParser, FormatsAreRecognisedFromTheTemplate) {
  auto name = [](std::string_view source) {
    const ToolFormat* format = find_tool_format(source);
    return std::string(format != nullptr ? format->name : "none");
  };
  EXPECT_EQ(name("{{ '<tool_call>' }}"), "hermes");
  EXPECT_EQ(name("<|start_header_id|> {\"name\": .., \"parameters\": ..}"), "llama3");
  EXPECT_EQ(name("<|python_tag|>"), "llama3");
  EXPECT_EQ(name("[AVAILABLE_TOOLS] [TOOL_CALLS]"), "mistral");
  EXPECT_EQ(name("[TOOL_CALLS]{{ name }}[ARGS]{{ arguments }}"), "mistral_args");
  EXPECT_EQ(name("<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json"), "deepseek");
  EXPECT_EQ(name("<｜tool▁call▁begin｜>"), "deepseek_v31");
  EXPECT_EQ(name("<|channel|>final<|message|>"), "harmony");
  EXPECT_EQ(name("<|im_start|>"), "none");
  EXPECT_EQ(find_reasoning_tags("x </think> y").begin, "<think>");
  EXPECT_EQ(find_reasoning_tags("[/THINK]").begin, "[THINK]");
  EXPECT_EQ(find_reasoning_tags("none").end, "");
}

TEST(AnswerParser, ManyMarkersTakeLinearTime) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "<tool_call>{";
  auto parser = make_parser(format_named("hermes"), &kThink, false);
  ChatOutput out;
  for (char c : text) parser->push(std::string_view(&c, 1), out);
  parser->finish(out);
  EXPECT_EQ(out.content, text);
}

}  // namespace
}  // namespace vitrine
