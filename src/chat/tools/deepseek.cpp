// DeepSeek V3 and R1: between <｜tool▁calls▁begin｜> and <｜tool▁calls▁end｜>, each call as
// <｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME, JSON in a code fence, <｜tool▁call▁end｜>. From
// V3.1 on the call is NAME<｜tool▁sep｜>JSON.
#include "chat/parsing.h"

namespace vitrine {
namespace {

constexpr std::string_view kMarkers[] = {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>",
                                         "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
                                         "<｜tool▁sep｜>"};
enum Marker { kCallsBegin, kCallsEnd, kCallBegin, kCallEnd, kSeparator };

std::string_view without_fence(std::string_view text) {
  text = trimmed(text);
  if (!text.starts_with("```")) return text;
  text.remove_prefix(std::min(text.find('\n'), text.size()));
  if (text.ends_with("```")) text.remove_suffix(3);
  return trimmed(text);
}

std::optional<ToolCall> make_call(std::string_view before, std::string_view after) {
  std::string_view name = trimmed(before), body = after;
  if (name == "function") {
    std::size_t line = std::min(after.find('\n'), after.size());
    name = trimmed(after.substr(0, line));
    body = after.substr(line);
  }
  body = without_fence(body);
  if (name.empty() || body.empty() || !parse_json(body, "arguments").ok()) return std::nullopt;
  return ToolCall{"", std::string(name), std::string(body)};
}

constexpr CallSyntax kSyntax{"<｜tool▁calls▁begin｜>",
                             "\n",
                             "<｜tool▁calls▁end｜>",
                             "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                             "\n```json\n",
                             "\n```<｜tool▁call▁end｜>"};

class Parser : public AnswerParser {
 public:
  void push(std::string_view text, ChatOutput& out) override {
    for (const MarkerStream::Piece& piece : stream_.push(text)) {
      switch (piece.marker) {
        case kCallsBegin:
          in_calls_ = true;
          content_.call();
          break;
        case kCallsEnd:
          end_call(out);
          in_calls_ = false;
          break;
        case kCallBegin:
          end_call(out);
          in_calls_ = true;
          in_call_ = true;
          break;
        case kCallEnd:
          end_call(out);
          break;
        case kSeparator:
          separated_ = true;
          break;
        default:
          add(piece.text, out);
      }
    }
  }

  void finish(ChatOutput& out) override {
    add(stream_.finish(), out);
    end_call(out);
    content_.finish(out);
  }

 private:
  void add(std::string_view text, ChatOutput& out) {
    if (in_call_)
      (separated_ ? after_ : before_) += text;
    else if (!in_calls_)
      content_.write(text, out);
  }

  void end_call(ChatOutput& out) {
    if (in_call_) {
      if (auto call = make_call(before_, after_)) {
        content_.call();
        out.calls.push_back(std::move(*call));
      } else {
        content_.write(before_, out);
        content_.write(after_, out);
      }
    }
    in_call_ = separated_ = false;
    before_.clear();
    after_.clear();
  }

  MarkerStream stream_{{std::begin(kMarkers), std::end(kMarkers)}};
  ContentWriter content_;
  bool in_calls_ = false, in_call_ = false, separated_ = false;
  std::string before_, after_;
};

}  // namespace

extern const ToolFormat kToolFormat_deepseek;
const ToolFormat kToolFormat_deepseek{
    "deepseek",
    30,
    [](std::string_view source) { return source.find("<｜tool▁call▁begin｜>") != source.npos; },
    kMarkers,
    false,
    kSyntax,
    [] { return std::unique_ptr<AnswerParser>(std::make_unique<Parser>()); }};

}  // namespace vitrine
