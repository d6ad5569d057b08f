// Tool calls while they are being written: the name as soon as it is certain, arguments as they
// come.
//
// What has begun like a call is one, and its arguments are passed on as the model wrote them; what
// never does is held until its end and then is a call, several, or text. Both are decided by the
// bytes alone, not by how they were cut.
#pragma once

#include <string>
#include <string_view>

#include "chat/tool_format.h"

namespace vitrine {

// The text of one JSON object or list, from its first bracket to its last.
class ArgumentStream {
 public:
  // Passes on what belongs to it; how many bytes that were. White space in front is dropped.
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
  // The end: the text that is no call, if there is any.
  std::string finish(ChatOutput& out);
  bool quoted() const { return state_ == State::kArguments && arguments_.quoted(); }
  bool begun() const { return begun_; }  // some call was read

 private:
  enum class State {
    kBetween,    // before an object
    kHeader,     // in one, before its arguments
    kArguments,  //
    kTail,       // behind them
    kHold,       // something else: it is looked at when it is complete
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
