// Mistral: [TOOL_CALLS][{"name": .., "arguments": {..}}, ..], and newer models'
// [TOOL_CALLS]NAME[ARGS]{..}, once for each call, maybe with [CALL_ID]ID between.
#include "chat/parsing.h"

namespace vitrine {
namespace {

constexpr std::string_view kMarkers[] = {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"};

std::optional<ToolCall> named_call(std::string_view text) {
  std::size_t args = text.find("[ARGS]");
  if (args == text.npos) return std::nullopt;
  std::string_view name = text.substr(0, args), body = trimmed(text.substr(args + 6));
  name = trimmed(name.substr(0, name.find("[CALL_ID]")));
  if (name.empty() || json_length(body) != body.size()) return std::nullopt;
  if (!parse_json(body, "arguments").ok()) return std::nullopt;
  return ToolCall{"", std::string(name), std::string(body)};
}

constexpr CallSyntax kSyntax{"[TOOL_CALLS][",       ", ", "]", "{\"name\": \"",
                             "\", \"arguments\": ", "}"};

class Parser : public AnswerParser {
 public:
  void push(std::string_view text, ChatOutput& out) override {
    for (const MarkerStream::Piece& piece : stream_.push(text)) {
      if (piece.marker < 0) {
        add(piece.text, out);
      } else {
        if (inside_) end_call(out);
        inside_ = true;
      }
    }
  }

  void finish(ChatOutput& out) override {
    add(stream_.finish(), out);
    if (inside_) end_call(out);
    content_.finish(out);
  }

 private:
  void add(std::string_view text, ChatOutput& out) {
    if (inside_)
      body_ += text;
    else
      content_.write(text, out);
  }

  void end_call(ChatOutput& out) {
    std::string body = std::exchange(body_, {});
    std::vector<ToolCall> calls = calls_from_text(body);
    if (auto call = named_call(body)) calls.push_back(std::move(*call));
    if (calls.empty()) {
      content_.write(kMarkers[0], out);
      content_.write(body, out);
      return;
    }
    content_.call();
    for (ToolCall& call : calls) out.calls.push_back(std::move(call));
  }

  MarkerStream stream_{{"[TOOL_CALLS]"}};
  ContentWriter content_;
  bool inside_ = false;
  std::string body_;
};

}  // namespace

extern const ToolFormat kToolFormat_mistral;
const ToolFormat kToolFormat_mistral{
    "mistral",
    20,
    [](std::string_view source) { return source.find("[TOOL_CALLS]") != source.npos; },
    kMarkers,
    false,
    kSyntax,
    [] { return std::unique_ptr<AnswerParser>(std::make_unique<Parser>()); }};

}  // namespace vitrine
