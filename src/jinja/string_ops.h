// Operations on strings that filters and methods share. They keep the marks of the caller's text.
#pragma once

#include <optional>
#include <string>

#include "jinja/object.h"

namespace vitrine::jinja {

// Where `part` occurs in `text`, from the left or from the right; occurrences do not overlap. Takes
// time by the length of both, not by their product as std's search does.
class Search {
 public:
  Search(std::string_view text, std::string_view part, bool from_right = false);
  // The next place; none: there is no further one.
  std::optional<std::size_t> next();
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

 private:
  std::string_view text_, part_;
  bool from_right_;
  std::string reversed_text_, reversed_part_;  // of a search from the right
  std::size_t at_ = 0;
};

Text replace(const Text& text, const Text& from, const Text& to, Int count);
// The lines without their ends, or with them.
std::vector<Value> split_lines(const Text& text, bool keep_ends);
// str.title: every run of letters begins in upper case.
Text title(const Text& text);
// Padded with `fill` to `width` characters; left and right: on which sides.
Text pad(const Text& text, Int width, char fill, bool left, bool right);
// '{} {name:>5}'.format(...) (format.cpp)
class Interpreter;
Text format_braces(Interpreter& run, const Text& format, const Args& args);
// One value by a format specification such as ">10.2f"; of strings, integers and floats.
Text format_value(const Value& value, std::string_view spec);

}  // namespace vitrine::jinja
