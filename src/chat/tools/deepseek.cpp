// DeepSeek V3 and R1: between <｜tool▁calls▁begin｜> and <｜tool▁calls▁end｜>, each call as
// <｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME, JSON in a code fence, <｜tool▁call▁end｜>. The
// parser reads what models from V3.1 on write too (deepseek_v31.cpp).
#include "chat/tools/deepseek.h"

#include "chat/call_stream.h"
#include "chat/parsing.h"

namespace vitrine {
namespace {

enum Marker { kCallsBegin, kCallsEnd, kCallBegin, kCallEnd, kSeparator };

constexpr std::string_view kSpace = " \t\r\n";

// What is left of `text` behind white space and the first line of a code fence; empty: not all of
// that has come.
std::string_view behind_fence(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  if (!text.starts_with("`")) return text;
  text.remove_prefix(std::min(text.find('\n'), text.size()));
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text;
}

constexpr CallSyntax kSyntax{"<｜tool▁calls▁begin｜>",
                             "\n",
                             "<｜tool▁calls▁end｜>",
                             "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                             "\n```json\n",
                             "\n```<｜tool▁call▁end｜>",
                             true,
                             "<｜tool▁calls▁begin｜>"};

class Parser : public AnswerParser {
 public:
  void push(std::string_view text, ChatOutput& out) override {
    for (const MarkerStream::Piece& piece : stream_.push(text)) {
      // In a string of the arguments it is text.
      if (piece.marker >= 0 && arguments_.quoted()) {
        add(kDeepseekMarkers[piece.marker], out);
        continue;
      }
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
    if (in_call_ && called_)
      arguments_.push(text, out);
    else if (in_call_ && separated_)
      read(text, out);
    else if (in_call_)
      before_ += text;
    else if (!in_calls_)
      content_.write(text, out);
  }

  // Behind the separator, until the arguments begin.
  void read(std::string_view text, ChatOutput& out) {
    after_ += text;
    std::string_view name = trimmed(before_), body = after_;
    if (name == "function") {
      std::size_t line = body.find('\n');
      if (line == body.npos) return;
      name = trimmed(body.substr(0, line));
      body.remove_prefix(line);
    }
    body = behind_fence(body);
    if (name.empty() || body.empty() || body[0] != '{') return;
    called_ = true;
    content_.call();
    out.begin_call(std::string(name));
    arguments_.push(body, out);
  }

  void end_call(ChatOutput& out) {
    if (called_ && !arguments_.done()) out.end_call();
    if (in_call_ && !called_) {
      content_.write(before_, out);
      content_.write(after_, out);
    }
    in_call_ = separated_ = called_ = false;
    before_.clear();
    after_.clear();
    arguments_ = {};
  }

  MarkerStream stream_{{std::begin(kDeepseekMarkers), std::end(kDeepseekMarkers)}};
  ContentWriter content_;
  bool in_calls_ = false, in_call_ = false, separated_ = false;
  bool called_ = false;  // its arguments have begun
  std::string before_, after_;
  ArgumentStream arguments_;
};

}  // namespace

std::unique_ptr<AnswerParser> make_deepseek_parser() { return std::make_unique<Parser>(); }

extern const ToolFormat kToolFormat_deepseek;
const ToolFormat kToolFormat_deepseek{
    "deepseek",
    30,
    [](std::string_view source) { return source.find("<｜tool▁call▁begin｜>") != source.npos; },
    kDeepseekMarkers,
    {},
    kSyntax,
    make_deepseek_parser};

}  // namespace vitrine
