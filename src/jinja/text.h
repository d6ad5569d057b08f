// A string that tracks which of its bytes came from the caller (a message, a tool's description)
// and which from the template. Every operation on strings keeps these marks, so the rendered prompt
// tells where text may become a special token and where it may not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/budget.h"

namespace vitrine::jinja {

struct Span {
  std::size_t begin, end;
  std::int32_t source = 0;  // whose of the caller's texts: what the renderer's user gave it
  bool operator==(const Span&) const = default;
};

class Text {
 public:
  Text() = default;
  explicit Text(std::string bytes, bool caller = false, std::int32_t source = 0);
  Text(const Text& other) { *this = other; }
  Text(Text&&) = default;
  Text& operator=(const Text& other);
  Text& operator=(Text&&) = default;
  Text(const char* bytes) : Text(std::string(bytes)) {}

  std::string_view view() const { return bytes_; }
  const std::string& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // The caller's bytes: ascending, none empty, neighbours of one source joined.
  const std::vector<Span>& caller() const { return caller_; }
  // Marked by `safe` or `escape`: adding to it escapes what is added.
  bool html() const { return html_; }
  void set_html(bool html) { html_ = html; }

  void append(std::string_view bytes, bool caller = false, std::int32_t source = 0);
  void append(const char* bytes) { append(std::string_view(bytes)); }
  void append(const Text& other);
  // Bytes [begin, end) of `other`.
  void append(const Text& other, std::size_t begin, std::size_t end);
  Text substr(std::size_t begin, std::size_t end) const;
  Text substr(std::size_t begin) const { return substr(begin, size()); }

 private:
  void mark(std::size_t begin, std::size_t end, std::int32_t source);

  std::string bytes_;
  std::vector<Span> caller_;
  bool html_ = false;
};

// Where the characters of valid UTF-8 begin.
class CharIndex {
 public:
  explicit CharIndex(std::string_view text);
  std::size_t count() const { return count_; }
  // Up to count(), where it is the size of the text.
  std::size_t at(std::size_t character) const;

 private:
  static constexpr std::size_t kStride = 64;

  std::string_view text_;
  std::size_t count_;
  std::vector<std::size_t> starts_;  // of every kStride-th character; empty: all are ASCII
};

std::size_t count_chars(std::string_view text);

}  // namespace vitrine::jinja
