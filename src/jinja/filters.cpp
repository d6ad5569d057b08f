#include "jinja/filters.h"

#include <algorithm>
#include <cmath>

#include "jinja/chars.h"
#include "jinja/dumps.h"
#include "jinja/operators.h"

namespace vitrine::jinja {
namespace {

Value default_(Interpreter&, const Value& value, Params& params) {
  Value otherwise = params.optional("default_value", "");
  bool boolean = params.boolean("boolean", false);
  params.done();
  return value.is_undefined() || (boolean && !value.truthy()) ? otherwise : value;
}

Value tojson(Interpreter&, const Value& value, Params& params) {
  DumpOptions options = dump_options(params);
  params.done();
  return dumps(value, options);
}

// int(text, base) of Python; none where that would be a ValueError.
std::optional<Int> parse_int(std::string_view text, int base) {
  Text stripped = strip(Text(std::string(text)), true, true);
  std::string digits = stripped.bytes();
  std::erase(digits, '_');
  bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  auto prefixed = [&](char c) {
    return digits.size() > 2 && digits[0] == '0' && (digits[1] | 0x20) == c;
  };
  for (auto [c, b] : {std::pair{'x', 16}, {'o', 8}, {'b', 2}})
    if (prefixed(c) && (base == b || base == 0)) {
      digits.erase(0, 2);
      base = b;
    }
  if (base == 0) base = 10;
  if (digits.empty()) return std::nullopt;
  Int out = 0;
  for (char c : digits) {
    int digit = c >= '0' && c <= '9'                          ? c - '0'
                : std::isalpha(static_cast<unsigned char>(c)) ? (c | 0x20) - 'a' + 10
                                                              : 99;
    if (digit >= base) return std::nullopt;
    if (out > (Int{1} << 110)) fail("int(): the number is too large");
    out = out * base + digit;
  }
  return negative ? -out : out;
}

std::optional<double> parse_float(std::string_view text) {
  std::string s = strip(Text(std::string(text)), true, true).bytes();
  std::erase(s, '_');
  if (s.empty() || s.find_first_of("xXpP(") != s.npos) return std::nullopt;
  char* end = nullptr;
  double out = std::strtod(s.c_str(), &end);
  if (end != s.c_str() + s.size()) return std::nullopt;
  return out;
}

Value float_to_int(double x, const Value& otherwise) {
  if (std::isnan(x)) return otherwise;
  if (std::isinf(x)) fail("cannot convert float infinity to integer");
  if (std::abs(x) > 1e36) fail("int(): the number is too large");
  return static_cast<Int>(x);
}

Value int_(Interpreter&, const Value& value, Params& params) {
  Value otherwise = params.optional("default", 0);
  Int base = params.integer("base", 10);
  params.done();
  need(value);
  if (value.is_int() || value.is_bool()) return value.as_int();
  if (value.is_float()) return float_to_int(value.as_double(), otherwise);
  const Text* text = value.if_string();
  if (text == nullptr) return otherwise;
  if (base != 0 && (base < 2 || base > 36)) return otherwise;
  if (auto number = parse_int(text->view(), static_cast<int>(base))) return *number;
  if (auto number = parse_float(text->view())) return float_to_int(*number, otherwise);
  return otherwise;
}

Value float_(Interpreter&, const Value& value, Params& params) {
  Value otherwise = params.optional("default", 0.0);
  params.done();
  need(value);
  if (value.is_number()) return value.as_double();
  const Text* text = value.if_string();
  std::optional<double> number;
  if (text != nullptr) number = parse_float(text->view());
  return number ? Value(*number) : otherwise;
}

Value round_(Interpreter&, const Value& value, Params& params) {
  Int precision = params.integer("precision", 0);
  Value method = params.optional("method", "common");
  params.done();
  need(value);
  if (!value.is_number()) fail("round(): found '{}', allowed a number", value.type_name());
  if (std::abs(static_cast<double>(precision)) > 300) fail("round(): precision out of range");
  std::string_view how = method.is_string() ? method.if_string()->view() : "";
  double x = value.as_double(), unit = std::pow(10.0, static_cast<double>(precision));
  if (how == "ceil") return std::ceil(x * unit) / unit;
  if (how == "floor") return std::floor(x * unit) / unit;
  if (how != "common") fail("round(): method must be common, ceil or floor");
  // Integers stay integers, as in Python; ties go to even on the exact decimal value.
  if (!value.is_float() && precision >= 0) return value.as_int();
  if (precision < 0) {
    double rounded = std::nearbyint(x * unit) / unit;
    return value.is_float() ? Value(rounded) : Value(static_cast<Int>(rounded));
  }
  return std::strtod(fmt::format("{:.{}f}", x, static_cast<int>(precision)).c_str(), nullptr);
}

Value abs_(Interpreter&, const Value& value, Params& params) {
  params.done();
  need(value);
  if (!value.is_number()) fail("bad operand type for abs(): '{}'", value.type_name());
  if (value.is_float()) return std::abs(value.as_double());
  return value.as_int() < 0 ? -value.as_int() : value.as_int();
}

Value sum(Interpreter& run, const Value& value, Params& params) {
  Value attribute = params.optional("attribute", None{});
  Value out = params.optional("start", 0);
  params.done();
  if (out.is_string()) fail("sum() can't sum strings");
  for (const Value& item : run.iterate(value))
    out = binary("+", out, look_up(run, item, attribute));
  return out;
}

constexpr FilterEntry kNumbers[] = {
    {"default", default_}, {"d", default_},   {"tojson", tojson}, {"int", int_},
    {"float", float_},     {"round", round_}, {"abs", abs_},      {"sum", sum},
};

}  // namespace

std::span<const FilterEntry> number_filters() { return kNumbers; }

FilterFunction find_filter(std::string_view name) {
  for (auto list : {number_filters(), text_filters(), sequence_filters(), select_filters()})
    for (const FilterEntry& entry : list)
      if (entry.name == name) return entry.run;
  return nullptr;
}

Value look_up(Interpreter& run, const Value& item, const Value& attribute, const Value* otherwise) {
  if (attribute.is_none()) return item;
  std::vector<Value> parts;
  if (const Text* path = attribute.if_string()) {
    std::string_view rest = path->view();
    while (true) {
      std::string_view part = rest.substr(0, rest.find('.'));
      bool digits =
          !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
      if (digits)
        parts.emplace_back(std::stoi(std::string(part)));
      else
        parts.emplace_back(Text(std::string(part)));
      if (part.size() == rest.size()) break;
      rest.remove_prefix(part.size() + 1);
    }
  } else {
    parts.push_back(attribute);
  }
  Value out = item;
  for (const Value& part : parts) {
    out = run.get_item(out, part);
    if (otherwise != nullptr && out.is_undefined()) out = *otherwise;
  }
  return out;
}

Value ignore_case(const Value& value) {
  return value.is_string() ? Value(lower(*value.if_string())) : value;
}

}  // namespace vitrine::jinja
