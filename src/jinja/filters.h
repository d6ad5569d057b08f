// The filters, by file; filters.cpp finds them.
#pragma once

#include <span>

#include "jinja/interpreter.h"

namespace vitrine::jinja {

std::span<const FilterEntry> text_filters();
std::span<const FilterEntry> sequence_filters();
std::span<const FilterEntry> select_filters();
std::span<const FilterEntry> number_filters();

// A generator over items that are there already.
inline Value make_generator(std::vector<Value> items, const char* name = "generator") {
  return make_list(std::move(items), Sequence::Kind::kGenerator, name);
}
// "a.b.0" or 0: how filters with an `attribute` look into their items; None: the item itself.
Value look_up(Interpreter& run, const Value& item, const Value& attribute,
              const Value* otherwise = nullptr);
// Strings in lower case, others as they are.
Value ignore_case(const Value& value);

}  // namespace vitrine::jinja
