// Tool calls while they are being written: the name as soon as it is certain, arguments as they
// come.
//
// Text that begins like a call is a call, and its arguments are passed on as the model writes them.
// Other text is held until its end and then read as a call, several calls, or plain text. The
// result depends on the bytes only, not on how they were cut into pieces.
#pragma once

#include <string>
#include <string_view>

#include "chat/tool_format.h"

namespace vitrine {

// The text of one JSON object or list, from its first bracket to its last.
class ArgumentStream {
 public:
  // Passes on the bytes that belong to it and returns how many. Leading white space is dropped.
  std::size_t push(std::string_view text, ChatOutput& out);
  bool done() const { return done_; }
  bool quoted() const { return quoted_; }  // inside a string

 private:
  int depth_ = 0;
  bool quoted_ = false, escaped_ = false, begun_ = false, done_ = false;
};

// Objects {"name": .., "arguments" or "parameters": ..}, one after the other or in a list; between
// them white space, commas and semicolons.
class CallStream {
 public:
  void push(std::string_view text, ChatOutput& out);
  // The end of the answer: returns the text that is not a call, if any.
  std::string finish(ChatOutput& out);
  bool quoted() const { return state_ == State::kArguments && arguments_.quoted(); }
  bool begun() const { return begun_; }  // some call was read

 private:
  enum class State {
    kBetween,    // before an object
    kHeader,     // in one, before its arguments
    kArguments,  //
    kTail,       // behind them
    kHold,       // something else: parsed when it is complete
  };
  void header(char c, ChatOutput& out);
  void tail(char c);

  static constexpr std::size_t kMaxHeader = 1024;
  State state_ = State::kBetween;
  std::string held_;        // since the last call
  std::size_t object_ = 0;  // where an object begins in it
  bool begun_ = false, quoted_ = false, escaped_ = false;
  int depth_ = 0;  // kTail
  ArgumentStream arguments_;
};

}  // namespace vitrine
