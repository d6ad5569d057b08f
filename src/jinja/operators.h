// Python's operators.
#pragma once

#include "jinja/object.h"

namespace vitrine::jinja {

// "+", "-", "*", "/", "//", "%", "**"
Value binary(std::string_view op, const Value& a, const Value& b);
Value negate(const Value& value);
// -1, 0, 1; fails for types without an order.
int compare(const Value& a, const Value& b);
// `item in container`
bool contains(const Value& container, const Value& item);
// '%s of %d' % arguments (format.cpp)
Text format_percent(const Text& format, const Value& arguments);

}  // namespace vitrine::jinja
