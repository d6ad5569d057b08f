// Llama 3.1 to 3.3: the whole answer is {"name": .., "parameters": {..}}, or such after
// <|python_tag|>. What follows that tag and is no JSON is a call of a built-in tool:
// brave_search.call(query="..") or Python for the code interpreter.
#include "chat/call_stream.h"
#include "chat/parsing.h"

namespace vitrine {
namespace {

constexpr std::string_view kMarkers[] = {"<|python_tag|>"};
constexpr std::string_view kSpace = " \t\r\n";

// name.call(key="value", key2=3); none for anything else.
std::optional<ToolCall> builtin_call(std::string_view text) {
  std::size_t dot = text.find(".call(");
  if (dot == text.npos || !text.ends_with(')')) return std::nullopt;
  std::string_view name = text.substr(0, dot);
  if (name.find_first_of(" \n(\"'=") != name.npos || name.empty()) return std::nullopt;
  std::string_view rest = text.substr(dot + 6, text.size() - dot - 7);
  json::object arguments;
  while (!(rest = trimmed(rest)).empty()) {
    std::size_t equals = rest.find('=');
    if (equals == rest.npos) return std::nullopt;
    std::string key(trimmed(rest.substr(0, equals)));
    rest = trimmed(rest.substr(equals + 1));
    std::size_t end = 0;
    if (rest.starts_with('"')) {
      for (end = 1; end < rest.size() && rest[end] != '"'; ++end)
        if (rest[end] == '\\') ++end;
      end = std::min(end + 1, rest.size());
    } else {
      end = std::min(rest.find(','), rest.size());
    }
    auto value = parse_json(rest.substr(0, end), "argument");
    if (!value.ok()) return std::nullopt;
    arguments[key] = *value;
    rest = trimmed(rest.substr(end));
    if (!rest.empty() && rest[0] != ',') return std::nullopt;
    if (!rest.empty()) rest.remove_prefix(1);
  }
  return ToolCall{"", std::string(name), to_json(arguments)};
}

constexpr CallSyntax kSyntax{"", "; ", "", "{\"name\": \"", "\", \"parameters\": ", "}"};

class Parser : public AnswerParser {
 public:
  void push(std::string_view text, ChatOutput& out) override {
    for (const MarkerStream::Piece& piece : stream_.push(text)) {
      if (piece.marker >= 0 && state_ != State::kTagged) {
        out.content += calls_.finish(out) + std::exchange(held_, {});
        calls_ = {};
        state_ = State::kTagged;
      } else {
        add(piece.marker >= 0 ? kMarkers[0] : std::string_view(piece.text), out);
      }
    }
  }

  void finish(ChatOutput& out) override {
    add(stream_.finish(), out);
    std::string text = calls_.finish(out) + held_;
    std::string_view code = trimmed(text);
    if (state_ != State::kTagged || calls_.begun() || code.empty()) {
      out.content += text;
      return;
    }
    auto call = builtin_call(code);
    out.whole_call(call ? *call
                        : ToolCall{"", "code_interpreter", to_json(json::object{{"code", code}})});
  }

 private:
  enum class State { kStart, kJson, kTagged, kContent };

  void add(std::string_view text, ChatOutput& out) {
    if (state_ == State::kContent) {
      out.content += text;
      return;
    }
    if (state_ != State::kStart) return calls_.push(text, out);
    held_ += text;
    std::size_t first = held_.find_first_not_of(kSpace);
    if (first == held_.npos) return;
    state_ = held_[first] == '{' ? State::kJson : State::kContent;
    std::string all = std::exchange(held_, {});
    if (state_ == State::kJson)
      calls_.push(all, out);
    else
      out.content += all;
  }

  MarkerStream stream_{{"<|python_tag|>"}};
  State state_ = State::kStart;
  std::string held_;  // kStart: white space
  CallStream calls_;
};

}  // namespace

extern const ToolFormat kToolFormat_llama3;
const ToolFormat kToolFormat_llama3{
    "llama3",
    40,
    [](std::string_view source) {
      return source.find("<|python_tag|>") != source.npos ||
             (source.find("<|start_header_id|>") != source.npos &&
              source.find("\"parameters\"") != source.npos &&
              source.find("<tool_call>") == source.npos);
    },
    kMarkers,
    {},
    kSyntax,
    [] { return std::unique_ptr<AnswerParser>(std::make_unique<Parser>()); }};

}  // namespace vitrine
