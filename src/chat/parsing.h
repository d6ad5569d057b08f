// What the parsers of answers share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/tool_format.h"

namespace vitrine {

// Cuts a stream of text at markers. A marker may be spread over several pieces of the stream.
class MarkerStream {
 public:
  explicit MarkerStream(std::vector<std::string> markers) : markers_(std::move(markers)) {}

  // Text that is certain to be no marker, or a marker (its number).
  struct Piece {
    std::string text;
    int marker = -1;
  };
  std::vector<Piece> push(std::string_view text);
  // What was held back.
  std::string finish() { return std::move(held_); }

 private:
  std::vector<std::string> markers_;
  std::string held_;
};

// Content with the white space around tool calls left out.
class ContentWriter {
 public:
  void write(std::string_view text, ChatOutput& out);
  // A call follows: drops the white space before it.
  void call() {
    space_.clear();
    after_call_ = true;
  }
  void finish(ChatOutput& out) {
    if (!after_call_) out.content += space_;
    space_.clear();
  }

 private:
  std::string space_;
  bool after_call_ = false;
};

// Text without the white space at both ends.
class TrimStream {
 public:
  // The part that is certainly not trailing white space.
  std::string push(std::string_view text);

 private:
  std::string space_;
  bool begun_ = false;
};

// Whether a JSON object that is being read is inside a string at the moment. Text that is not a
// JSON object never is.
class JsonQuotes {
 public:
  void push(std::string_view text);
  bool quoted() const { return quoted_; }

 private:
  bool begun_ = false, object_ = false, quoted_ = false, escaped_ = false;
};

// Whether `c` is part of a JSON string, its quotes included.
bool in_json_string(char c, bool& quoted, bool& escaped);

std::string_view trimmed(std::string_view text);

// {"name": .., "arguments" or "parameters": ..}; arguments may be text that holds JSON.
std::optional<ToolCall> call_from_json(const json::value& value);
// One JSON object of that form and nothing else.
std::optional<ToolCall> call_from_text(std::string_view text);
// Several, as a list or one after the other; between them white space, commas and semicolons. None
// when there is anything else.
std::vector<ToolCall> calls_from_text(std::string_view text);
// The length of the JSON object or list that the text begins with; 0: it is not complete.
std::size_t json_length(std::string_view text);

}  // namespace vitrine
