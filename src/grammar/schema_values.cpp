#include <algorithm>

#include "base/utf8.h"
#include "grammar/json_text.h"
#include "grammar/numerals.h"
#include "grammar/regex.h"
#include "grammar/schema_keywords.h"

namespace vitrine::grammar {

Result<Shapes> Keywords::number_shape(Result<Dfa> dfa, bool negated) {
  if (!dfa.ok())
    return make_error(dfa.error().code, "{}: \"{}\": {}", reader_.what_, keyword_,
                      dfa.error().message);
  Shape out;
  if (negated) {
    VT_TRY(Dfa all, all_numerals(reader_.budget_));
    VT_TRY(dfa, subtract(all, *dfa, reader_.budget_));
    out.types = Shape::kNumber;
  }
  if (dfa->empty()) out.types &= static_cast<std::uint8_t>(~Shape::kNumber);
  out.number = std::make_shared<const Dfa>(std::move(*dfa));
  return out.types ? Shapes{out} : Shapes{};
}

Result<Shapes> Keywords::text_shape(Result<Dfa> dfa, bool negated) {
  if (!dfa.ok()) return dfa.error();
  Shape out;
  if (negated) {
    VT_TRY(Dfa all, any_text(reader_.budget_));
    VT_TRY(dfa, subtract(all, *dfa, reader_.budget_));
    out.types = Shape::kString;
  }
  if (dfa->empty()) out.types &= static_cast<std::uint8_t>(~Shape::kString);
  out.text = std::make_shared<const Dfa>(std::move(*dfa));
  return out.types ? Shapes{out} : Shapes{};
}

Result<Shapes> Keywords::type(const json::value& v, bool negated) {
  static constexpr std::pair<std::string_view, std::uint8_t> kTypes[] = {
      {"null", Shape::kNull},     {"boolean", Shape::kFalse | Shape::kTrue},
      {"number", Shape::kNumber}, {"string", Shape::kString},
      {"array", Shape::kArray},   {"object", Shape::kObject}};
  std::uint8_t types = 0;
  bool integer = false;
  json::array one{v};
  for (const json::value& name : v.is_array() ? v.get_array() : one) {
    auto it = std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto& t) {
      return name.is_string() && name.get_string() == t.first;
    });
    if (it != std::end(kTypes))
      types |= it->second;
    else if (name.is_string() && name.get_string() == "integer")
      integer = true;
    else
      return invalid("type", name,
                     "null, boolean, number, integer, string, array, object or a list of them");
  }
  integer = integer && !(types & Shape::kNumber);
  Shape out{.types = static_cast<std::uint8_t>(negated ? Shape::kAll & ~types : types)};
  if (integer) {
    VT_TRY(Dfa whole, whole_numerals(reader_.budget_));
    VT_TRY(Shapes numbers, number_shape(std::move(whole), negated));
    out.types |= Shape::kNumber;
    out.number = numbers[0].number;
  }
  return out.types ? Shapes{out} : Shapes{};
}

Result<Shapes> Keywords::constant(const json::value& v, bool negated) {
  return reader_.expand_const(v, negated);
}

Result<Shapes> Keywords::enumeration(const json::value& v, bool negated) {
  VT_TRY(const json::array* values, list("enum", v));
  json::array plain;
  Shapes out;
  if (negated) out.push_back({});
  for (const json::value& value : *values) {
    if (!value.is_array() && !value.is_object()) {
      plain.push_back(value);
      continue;
    }
    VT_TRY(Shapes one, reader_.expand_const(value, negated));
    if (negated) {
      VT_TRY(out, reader_.meet(out, one));
    } else {
      VT_RETURN_IF_ERROR(append(out, one));
    }
  }
  if (plain.empty()) return out;
  VT_TRY(Shapes scalars, reader_.scalars(plain, negated));
  if (negated) return reader_.meet(out, scalars);
  VT_RETURN_IF_ERROR(append(out, scalars));
  return out;
}

Result<Shapes> Keywords::bound(std::string_view keyword, const json::value& v, bool below, bool at,
                               bool above, bool negated) {
  if (!v.is_number()) return invalid(keyword, v, "a number");
  VT_TRY(Decimal number, to_decimal(v));
  return number_shape(compared(number, below, at, above, reader_.budget_), negated);
}
Result<Shapes> Keywords::minimum(const json::value& v, bool negated) {
  return bound("minimum", v, false, true, true, negated);
}
Result<Shapes> Keywords::exclusive_minimum(const json::value& v, bool negated) {
  return bound("exclusiveMinimum", v, false, false, true, negated);
}
Result<Shapes> Keywords::maximum(const json::value& v, bool negated) {
  return bound("maximum", v, true, true, false, negated);
}
Result<Shapes> Keywords::exclusive_maximum(const json::value& v, bool negated) {
  return bound("exclusiveMaximum", v, true, false, false, negated);
}

Result<Shapes> Keywords::multiple_of(const json::value& v, bool negated) {
  if (!v.is_number()) return invalid("multipleOf", v, "a number above 0");
  VT_TRY(Decimal number, to_decimal(v));
  if (number.negative || number.is_zero()) return invalid("multipleOf", v, "a number above 0");
  return number_shape(multiples(number, reader_.budget_), negated);
}

Result<Shapes> Keywords::min_length(const json::value& v, bool negated) {
  VT_TRY(std::uint64_t n, size("minLength", v));
  if (!negated) return Shapes{{.min_length = n}};
  if (n == 0) return Shapes{};
  return Shapes{{.types = Shape::kString, .max_length = n - 1}};
}

Result<Shapes> Keywords::max_length(const json::value& v, bool negated) {
  VT_TRY(std::uint64_t n, size("maxLength", v));
  if (!negated) return Shapes{{.max_length = n}};
  return Shapes{{.types = Shape::kString, .min_length = n + 1}};
}

Result<Shapes> Keywords::pattern(const json::value& v, bool negated) {
  if (!v.is_string()) return invalid("pattern", v, "a regular expression");
  return text_shape(regex_to_dfa(v.get_string(), Anchoring::kSearch,
                                 fmt::format("{}: \"pattern\"", reader_.what_), reader_.budget_),
                    negated);
}

Result<Shapes> Keywords::format(const json::value& v, bool negated) {
  if (!v.is_string()) return invalid("format", v, "a name");
  const char* pattern = format_pattern(v.get_string());
  if (pattern == nullptr)
    return reader_.refuse("format",
                          fmt::format("\"{}\" is not supported", shortened(v.get_string(), 100)));
  return text_shape(regex_to_dfa(pattern, Anchoring::kWhole, "format", reader_.budget_), negated);
}

Result<Shapes> Keywords::schema_uri(const json::value& v, bool negated) {
  static constexpr std::string_view kUris[] = {"https://json-schema.org/draft/2020-12/schema",
                                               "https://json-schema.org/draft/2019-09/schema",
                                               "http://json-schema.org/draft-07/schema"};
  std::string_view uri = v.is_string() ? std::string_view(v.get_string()) : "";
  if (uri.ends_with('#')) uri.remove_suffix(1);
  if (std::find(std::begin(kUris), std::end(kUris), uri) == std::end(kUris))
    return reader_.refuse("$schema", "is not that of draft 2020-12 or one that is much the same");
  return negated ? Shapes{} : Shapes{Shape{}};
}

Result<Shapes> Keywords::id(const json::value&, bool negated) {
  if (!is_root_) return reader_.refuse("$id", "is supported at the top of the schema only");
  return negated ? Shapes{} : Shapes{Shape{}};
}

}  // namespace vitrine::grammar
