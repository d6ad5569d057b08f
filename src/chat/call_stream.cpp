#include "chat/call_stream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "chat/parsing.h"

namespace vitrine {
namespace {

constexpr std::string_view kSpace = " \t\r\n", kSeparators = " \t\r\n,;[]";

// Takes `token` off the front, and white space before it.
bool take(std::string_view& text, std::string_view token) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  if (!text.starts_with(token)) return false;
  text.remove_prefix(token.size());
  return true;
}

// The name in {"name": "NAME", "arguments": with nothing behind it but white space.
std::optional<std::string> name_of_header(std::string_view text) {
  if (!take(text, "{") || !take(text, "\"name\"") || !take(text, ":") || !take(text, "\""))
    return std::nullopt;
  std::size_t end = 0;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  if (end >= text.size()) return std::nullopt;
  auto name = parse_json(fmt::format("\"{}\"", text.substr(0, end)), "name");
  text.remove_prefix(end + 1);
  bool rest = take(text, ",") && (take(text, "\"arguments\"") || take(text, "\"parameters\"")) &&
              take(text, ":") && trimmed(text).empty();
  if (!rest || !name.ok() || !name->is_string()) return std::nullopt;
  return std::string(name->get_string());
}

}  // namespace

std::size_t ArgumentStream::push(std::string_view text, ChatOutput& out) {
  if (done_) return 0;
  std::size_t from = 0;
  if (!begun_) from = std::min(text.find_first_not_of(kSpace), text.size());
  std::size_t at = from;
  for (; at < text.size() && !done_; ++at) {
    begun_ = true;
    char c = text[at];
    if (in_json_string(c, quoted_, escaped_)) continue;
    if (c == '{' || c == '[') ++depth_;
    if (c == '}' || c == ']') done_ = --depth_ <= 0;
  }
  if (at > from) out.add_arguments(text.substr(from, at - from));
  if (done_) out.end_call();
  return at;
}

void CallStream::push(std::string_view text, ChatOutput& out) {
  while (!text.empty()) {
    if (state_ == State::kArguments) {
      text.remove_prefix(arguments_.push(text, out));
      if (arguments_.done()) state_ = State::kTail, depth_ = 1;
      continue;
    }
    if (state_ == State::kHold) {
      held_ += text;
      return;
    }
    char c = text.front();
    // An object whose arguments begin at this bracket.
    bool opens = state_ == State::kHeader && !quoted_ && c == '{';
    auto name = opens ? name_of_header(std::string_view(held_).substr(object_)) : std::nullopt;
    if (name) {
      out.begin_call(std::move(*name));
      held_.clear();
      begun_ = true;
      arguments_ = {};
      state_ = State::kArguments;
      continue;
    }
    if (opens) state_ = State::kHold;
    text.remove_prefix(1);
    if (state_ == State::kTail) {
      tail(c);
      continue;
    }
    held_ += c;
    if (state_ == State::kHeader) {
      header(c, out);
    } else if (state_ == State::kBetween && c == '{') {
      object_ = held_.size() - 1;
      state_ = State::kHeader;
      quoted_ = escaped_ = false;
    } else if (state_ == State::kBetween && kSeparators.find(c) == kSeparators.npos) {
      state_ = State::kHold;
    }
  }
}

// An object that ends without a bracket inside has no arguments, or has them as text.
void CallStream::header(char c, ChatOutput& out) {
  if (held_.size() > kMaxHeader) state_ = State::kHold;
  if (in_json_string(c, quoted_, escaped_) || c != '}') return;
  auto call = call_from_text(std::string_view(held_).substr(object_));
  state_ = call ? State::kBetween : State::kHold;
  if (!call) return;
  out.whole_call(std::move(*call));
  begun_ = true;
  held_.clear();
}

void CallStream::tail(char c) {
  if (in_json_string(c, quoted_, escaped_)) return;
  if (c == '{' || c == '[') ++depth_;
  if (c == '}' || c == ']') --depth_;
  if (depth_ == 0) state_ = State::kBetween;
}

std::string CallStream::finish(ChatOutput& out) {
  if (state_ == State::kArguments) out.end_call();
  std::string text = std::exchange(held_, {});
  std::string_view rest = text;
  if (begun_) {  // the separator, and the end of a list
    rest.remove_prefix(std::min(rest.find_first_not_of(kSeparators), rest.size()));
    rest = rest.substr(0, rest.find_last_not_of(kSeparators) + 1);
    if (rest.empty()) return {};
  }
  std::vector<ToolCall> calls;
  if (state_ == State::kHold) calls = calls_from_text(rest);
  if (calls.empty()) return text;
  begun_ = true;
  for (ToolCall& call : calls) out.whole_call(std::move(call));
  return {};
}

}  // namespace vitrine
