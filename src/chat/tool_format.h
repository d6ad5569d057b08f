// How models write tool calls and reasoning, and the parsers that read them as they are generated.
//
// A parser is fed the text in pieces of any size and gives the same result for every way of cutting
// it. A format is one file under tools/.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/message.h"

namespace vitrine {

// A further piece of a call. Ids are assigned by the caller of the parser.
struct CallPiece {
  std::string name;       // in the first piece of a call only
  std::string arguments;  // more of them; together JSON, as the model wrote it
  bool begins = false, ends = false;
};

// What was read: since the last time, or all of it.
struct ChatOutput {
  std::string content, reasoning;
  std::vector<CallPiece> calls;  // one without a name continues the last call before it

  void begin_call(std::string name);
  void add_arguments(std::string_view text);
  void end_call();
  void whole_call(ToolCall call);
};

// One answer; one thread.
class AnswerParser {
 public:
  virtual ~AnswerParser() = default;
  virtual void push(std::string_view text, ChatOutput& out) = 0;
  // The end of the answer: what was held back comes out.
  virtual void finish(ChatOutput& out) = 0;
  virtual bool in_reasoning() const { return false; }
};

// How a format writes calls, for answers that are constrained to be calls: begin  call (separator
// call)* end        a call: before_name NAME after_name ARGUMENTS suffix
struct CallSyntax {
  std::string_view begin, separator, end;
  std::string_view before_name, after_name, suffix;
  bool several = true;  // an answer may have more than one
  // The part of begin and before_name after which a call certainly follows. Empty: a call is
  // recognised by its first character, at the beginning of an answer.
  std::string_view trigger = {};
};

// How a format writes reasoning:  begin TEXT end next  and in front of the answer itself `answer`.
struct ReasoningSyntax {
  std::string_view begin = {}, end = {}, next = {}, answer = {};
};

struct ToolFormat {
  const char* name;
  int order;  // formats are tried in this order
  // Whether a template is written for it.
  bool (*matches)(std::string_view template_source);
  // Markers that may be special tokens and that the parser needs.
  std::span<const std::string_view> markers;
  // How the format itself marks reasoning, with or without tools. An empty `begin`: it does not.
  ReasoningSyntax reasoning;
  CallSyntax syntax;
  std::unique_ptr<AnswerParser> (*make)();
};
std::span<const ToolFormat* const> all_tool_formats();
const ToolFormat* find_tool_format(std::string_view template_source);
inline bool reads_reasoning(const ToolFormat* format) {
  return format != nullptr && !format->reasoning.begin.empty();
}

struct ReasoningTags {
  std::string begin, end;  // "<think>", "</think>"; empty: none
};
ReasoningTags find_reasoning_tags(std::string_view template_source);

// The parser of an answer. `format`: null when calls are not to be parsed. `tags`: null when
// reasoning is not to be parsed. `reasoning`: the prompt ended inside reasoning.
std::unique_ptr<AnswerParser> make_parser(const ToolFormat* format, const ReasoningTags* tags,
                                          bool reasoning);

}  // namespace vitrine
