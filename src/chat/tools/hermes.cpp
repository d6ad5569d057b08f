// Hermes, Qwen 2.5 and 3: <tool_call>{"name": .., "arguments": {..}}</tool_call>, and what Qwen's
// coders write between the same tags: <function=NAME><parameter=KEY>VALUE</parameter></function>.
#include "chat/call_stream.h"
#include "chat/parsing.h"

namespace vitrine {
namespace {

constexpr std::string_view kMarkers[] = {"<tool_call>", "</tool_call>"};

// The text between two marks; the first is consumed with it.
std::optional<std::string_view> between(std::string_view& text, std::string_view begin,
                                        std::string_view end) {
  std::size_t from = text.find(begin);
  if (from == text.npos) return std::nullopt;
  from += begin.size();
  std::size_t to = text.find(end, from);
  if (to == text.npos) return std::nullopt;
  std::string_view out = text.substr(from, to - from);
  text.remove_prefix(to + end.size());
  return out;
}

// Values that are JSON other than a string count as such; the rest is text.
json::value parameter_value(std::string_view text) {
  if (text.starts_with('\n')) text.remove_prefix(1);
  if (text.ends_with('\n')) text.remove_suffix(1);
  auto value = parse_json(text, "parameter");
  if (value.ok() && !value->is_string()) return *value;
  return json::string(text);
}

std::optional<ToolCall> call_from_tags(std::string_view text) {
  auto name = between(text, "<function=", ">");
  if (!name || text.find("</function>") == text.npos) return std::nullopt;
  json::object arguments;
  while (auto key = between(text, "<parameter=", ">")) {
    std::size_t end = text.find("</parameter>");
    if (end == text.npos) return std::nullopt;
    arguments[trimmed(*key)] = parameter_value(text.substr(0, end));
    text.remove_prefix(end);
  }
  return ToolCall{"", std::string(trimmed(*name)), to_json(arguments)};
}

constexpr CallSyntax kSyntax{"<tool_call>\n",
                             "\n</tool_call>\n<tool_call>\n",
                             "\n</tool_call>",
                             "{\"name\": \"",
                             "\", \"arguments\": ",
                             "}",
                             true,
                             "<tool_call>"};

class Parser : public AnswerParser {
 public:
  void push(std::string_view text, ChatOutput& out) override {
    for (const MarkerStream::Piece& piece : stream_.push(text)) {
      if (piece.marker < 0) {
        add(piece.text, out);
      } else if (piece.marker == 0 && !inside_) {
        inside_ = true;
        body_ = {};
      } else if (piece.marker == 1 && inside_ && !body_.quoted()) {
        end_call(true, out);
      } else {
        add(kMarkers[piece.marker], out);
      }
    }
  }

  void finish(ChatOutput& out) override {
    add(stream_.finish(), out);
    if (inside_) end_call(false, out);
    content_.finish(out);
  }

 private:
  void add(std::string_view text, ChatOutput& out) {
    if (!inside_) return content_.write(text, out);
    body_.push(text, out);
    if (body_.begun()) content_.call();
  }

  void end_call(bool closed, ChatOutput& out) {
    inside_ = false;
    std::string text = body_.finish(out);
    if (auto call = call_from_tags(text); call && !body_.begun()) {
      content_.call();
      out.whole_call(std::move(*call));
      return;
    }
    if (body_.begun()) return content_.call();
    // Not a call after all: the text as it was.
    content_.write(kMarkers[0], out);
    content_.write(text, out);
    if (closed) content_.write(kMarkers[1], out);
  }

  MarkerStream stream_{{"<tool_call>", "</tool_call>"}};
  ContentWriter content_;
  bool inside_ = false;
  CallStream body_;
};

}  // namespace

extern const ToolFormat kToolFormat_hermes;
const ToolFormat kToolFormat_hermes{
    "hermes",
    50,
    [](std::string_view source) { return source.find("<tool_call>") != source.npos; },
    kMarkers,
    {},
    kSyntax,
    [] { return std::unique_ptr<AnswerParser>(std::make_unique<Parser>()); }};

}  // namespace vitrine
