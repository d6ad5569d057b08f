// A cursor over the text of a grammar or pattern, for recursive-descent parsers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/utf8.h"

namespace vitrine::grammar {

class Reader {
 public:
  // `what` names the text in errors.
  Reader(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  bool done() const { return at_ == text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool looking_at(std::string_view s) const { return text_.substr(at_).starts_with(s); }
  bool take(std::string_view s) {
    if (!looking_at(s)) return false;
    at_ += s.size();
    return true;
  }
  // The next character; the text is not at its end and is valid UTF-8.
  char32_t character() {
    Utf8Char c = utf8_next(text_.substr(at_));
    at_ += static_cast<std::size_t>(c.length);
    return c.code;
  }
  std::string_view take_while(bool (*wanted)(char)) {
    std::size_t begin = at_;
    while (!done() && wanted(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  std::optional<char32_t> hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      char c = peek(static_cast<std::size_t>(i));
      int digit = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
      if (digit < 0) return std::nullopt;
      value = value * 16 + static_cast<char32_t>(digit);
    }
    at_ += static_cast<std::size_t>(digits);
    return value;
  }
  // A decimal number, at most 2^63; none when there is no digit.
  std::optional<std::uint64_t> number() {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    std::uint64_t value = 0;
    constexpr std::uint64_t kMost = std::uint64_t{1} << 63;
    for (; peek() >= '0' && peek() <= '9'; ++at_)
      value = std::min<std::uint64_t>(value > kMost / 10 ? kMost : value * 10 + (text_[at_] - '0'),
                                      kMost);
    return value;
  }
  std::size_t at() const { return at_; }
  void seek(std::size_t at) { at_ = at; }

  Error error(std::string_view message, ErrorCode code = ErrorCode::kMalformed) const {
    auto before = text_.substr(0, at_);
    auto line = 1 + std::count(before.begin(), before.end(), '\n');
    auto column = at_ - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
    return make_error(code, "{}, line {}, column {}: {}", what_, line, column, message);
  }

 private:
  std::string_view text_, what_;
  std::size_t at_ = 0;
};

}  // namespace vitrine::grammar
