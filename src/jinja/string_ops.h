// Operations on strings that filters and methods share. They keep the marks of the caller's text.
#pragma once

#include <optional>

#include "jinja/object.h"

namespace vitrine::jinja {

Text replace(const Text& text, const Text& from, const Text& to, Int count, Budget& budget);
// The lines without their ends, or with them.
std::vector<Text> split_lines(const Text& text, bool keep_ends);
// str.title: every run of letters begins in upper case.
Text title(const Text& text);
// Padded with `fill` to `width` characters; left and right: on which sides.
Text pad(const Text& text, Int width, char fill, bool left, bool right, Budget& budget);
// '{} {name:>5}'.format(...) (format_braces.cpp)
class Interpreter;
Text format_braces(Interpreter& run, const Text& format, const Args& args);
// One value by a format specification such as ">10.2f"; of strings, integers and floats.
Text format_value(const Value& value, std::string_view spec, Budget& budget);

}  // namespace vitrine::jinja
