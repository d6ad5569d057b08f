#include <algorithm>
#include <cmath>

#include "grammar/json_text.h"
#include "grammar/regex.h"
#include "grammar/schema_keywords.h"

namespace vitrine::grammar {
namespace {

constexpr std::uint64_t kMostSize = (std::uint64_t{1} << 31) - 1;

Shape any() { return {}; }

Shape of_type(std::uint8_t type) { return {.types = type}; }

}  // namespace

Result<std::uint64_t> Keywords::size(std::string_view keyword, const json::value& v) const {
  const std::string allowed = fmt::format("a whole number from 0 to {}", kMostSize);
  double number = -1;
  if (v.is_int64()) number = static_cast<double>(v.get_int64());
  if (v.is_uint64()) number = static_cast<double>(v.get_uint64());
  if (v.is_double()) number = v.get_double();
  if (!(number >= 0 && number <= static_cast<double>(kMostSize)) || number != std::floor(number))
    return invalid(keyword, v, allowed);
  return static_cast<std::uint64_t>(number);
}

// In-place applicators whose annotations "unevaluated..." would have to know.
bool Keywords::has_applicators() const {
  for (const char* name : {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if",
                           "dependentSchemas", "contains"})
    if (find(name) != nullptr) return true;
  return false;
}

// ---- items

Result<Shapes> Keywords::prefix_items(const json::value& v, bool negated) {
  VT_TRY(const json::array* all, list("prefixItems", v));
  if (all->size() > kMaxProperties) return invalid("prefixItems", all->size(), "fewer items");
  if (!negated) {
    Shape out = any();
    for (const json::value& schema : *all) out.array.first.push_back(need_of(schema));
    return Shapes{out};
  }
  Shapes out;
  for (std::size_t i = 0; i < all->size(); ++i) {
    if (is_trivial((*all)[i])) continue;
    Shape one = of_type(Shape::kArray);
    one.array.min = i + 1;
    one.array.first.resize(i);
    one.array.first.push_back(need_of((*all)[i], true));
    VT_RETURN_IF_ERROR(append(out, {one}));
  }
  return out;
}

Result<Shapes> Keywords::items(const json::value& v, bool negated) {
  if (!v.is_bool() && !v.is_object()) return invalid(keyword_, v, "a schema");
  const json::value* prefix = find("prefixItems");
  const std::size_t first =
      prefix != nullptr && prefix->is_array() ? prefix->get_array().size() : 0;
  if (first > kMaxProperties) return invalid("prefixItems", first, "fewer items");
  if (negated) {
    if (is_trivial(v)) return Shapes{};
    if (v != json::value(false)) return cannot_negate(keyword_);
    Shape out = of_type(Shape::kArray);
    out.array.min = first + 1;
    return Shapes{out};
  }
  Shape out = any();
  out.array.first.resize(first);
  out.array.rest = need_of(v);
  return Shapes{out};
}

Result<Shapes> Keywords::unevaluated_items(const json::value& v, bool negated) {
  if (is_trivial(v)) return negated ? Shapes{} : Shapes{any()};
  if (has_applicators()) return cannot(v, negated);
  if (find("items") != nullptr) return negated ? Shapes{} : Shapes{any()};
  return items(v, negated);
}

Result<Shapes> Keywords::min_items(const json::value& v, bool negated) {
  VT_TRY(std::uint64_t n, size("minItems", v));
  if (!negated) return Shapes{{.array = {.min = n}}};
  if (n == 0) return Shapes{};
  return Shapes{{.types = Shape::kArray, .array = {.max = n - 1}}};
}

Result<Shapes> Keywords::max_items(const json::value& v, bool negated) {
  VT_TRY(std::uint64_t n, size("maxItems", v));
  if (!negated) return Shapes{{.array = {.max = n}}};
  return Shapes{{.types = Shape::kArray, .array = {.min = n + 1}}};
}

Result<Shapes> Keywords::unique_items(const json::value& v, bool negated) {
  if (!v.is_bool()) return invalid("uniqueItems", v, "true or false");
  if (!v.get_bool()) return negated ? Shapes{} : Shapes{any()};
  return cannot(v, negated);
}

// Decided where it says no more than that there are items, or nothing.
Result<Shapes> Keywords::contains(const json::value& v, bool negated) {
  std::uint64_t min = 1, max = kUnbounded;
  if (const json::value* n = find("minContains")) {
    VT_TRY(min, size("minContains", *n));
  }
  if (const json::value* n = find("maxContains")) {
    VT_TRY(max, size("maxContains", *n));
  }
  if (min == 0 && max == kUnbounded) return negated ? Shapes{} : Shapes{any()};
  if (is_trivial(v) && !negated) return Shapes{{.array = {.min = min, .max = max}}};
  return cannot(v, negated);
}

// ---- members

Result<Shapes> Keywords::properties(const json::value&, bool negated) {
  return member_group(negated);
}
Result<Shapes> Keywords::pattern_properties(const json::value&, bool negated) {
  if (find("properties") != nullptr) return negated ? Shapes{} : Shapes{any()};  // read with those
  return member_group(negated);
}
Result<Shapes> Keywords::additional_properties(const json::value&, bool negated) {
  if (find("properties") != nullptr || find("patternProperties") != nullptr)
    return negated ? Shapes{} : Shapes{any()};
  return member_group(negated);
}

Result<Shapes> Keywords::unevaluated_properties(const json::value& v, bool negated) {
  if (is_trivial(v)) return negated ? Shapes{} : Shapes{any()};
  if (has_applicators()) return cannot(v, negated);
  if (find("additionalProperties") != nullptr || find("properties") != nullptr ||
      find("patternProperties") != nullptr)
    return negated ? Shapes{} : Shapes{any()};  // read with those
  return member_group(negated);
}

// What "properties", "patternProperties" and "additionalProperties" say together.
Result<Shapes> Keywords::member_group(bool negated) {
  Shape::Group group;
  Shapes differ;
  if (const json::value* v = find("properties")) {
    VT_TRY(const json::object* all, object("properties", *v));
    for (const auto& [key, schema] : *all) {
      group.named.emplace_back(key, need_of(schema));
      if (!negated || is_trivial(schema)) continue;
      Shape one = of_type(Shape::kObject);
      one.object.required = {std::string(key)};
      one.object.add({.named = {{std::string(key), need_of(schema, true)}}});
      VT_RETURN_IF_ERROR(append(differ, {one}));
    }
  }
  if (const json::value* v = find("patternProperties")) {
    VT_TRY(const json::object* all, object("patternProperties", *v));
    for (const auto& [key, schema] : *all) {
      if (negated && !is_trivial(schema)) return cannot_negate("patternProperties");
      VT_TRY(Dfa dfa, regex_to_dfa(key, Anchoring::kSearch,
                                   fmt::format("{}: \"patternProperties\"", reader_.what_),
                                   reader_.budget_));
      group.patterns.push_back(
          {std::string(key), std::make_shared<const Dfa>(std::move(dfa)), need_of(schema)});
    }
  }
  const json::value* other = find("additionalProperties");
  if (other == nullptr && find("unevaluatedProperties") != nullptr && !has_applicators())
    other = find("unevaluatedProperties");
  if (other != nullptr) {
    if (!other->is_bool() && !other->is_object())
      return invalid("additionalProperties", *other, "a schema");
    if (negated && !is_trivial(*other)) return cannot_negate("additionalProperties");
    group.other = need_of(*other);
  }
  if (negated) return differ;
  Shape out = any();
  out.object.add(std::move(group));
  return Shapes{out};
}

Result<Shapes> Keywords::property_names(const json::value& v, bool negated) {
  if (negated) return is_trivial(v) ? Shapes{} : Result<Shapes>(cannot_negate("propertyNames"));
  VT_TRY(const Shapes* all, shapes_of(v, false));
  Dfa names;
  for (const Shape& s : *all) {
    if (!(s.types & Shape::kString)) continue;
    VT_TRY(Dfa one, text_of_length(s.min_length, s.max_length, reader_.budget_));
    if (s.text) {
      VT_TRY(one, intersect(one, *s.text, reader_.budget_));
    }
    VT_TRY(names, unite(names, one, reader_.budget_));
  }
  Shape out = any();
  out.object.names = std::make_shared<const Dfa>(std::move(names));
  return Shapes{out};
}

Result<Shapes> Keywords::required(const json::value& v, bool negated) {
  VT_TRY(std::vector<std::string> all, names("required", v));
  if (all.size() > kMaxProperties) return invalid("required", all.size(), "fewer names");
  Shapes out;
  if (negated) {
    for (const std::string& name : all)
      VT_RETURN_IF_ERROR(append(out, {SchemaReader::without_member(name)}));
    return out;
  }
  out.push_back(any());
  std::set<std::string> seen;
  for (const std::string& name : all)
    if (seen.insert(name).second) out[0].object.required.push_back(name);
  return out;
}

Result<Shapes> Keywords::min_properties(const json::value& v, bool negated) {
  VT_TRY(std::uint64_t n, size("minProperties", v));
  if (!negated) return Shapes{{.object = {.min = n}}};
  if (n == 0) return Shapes{};
  return Shapes{{.types = Shape::kObject, .object = {.max = n - 1}}};
}

Result<Shapes> Keywords::max_properties(const json::value& v, bool negated) {
  VT_TRY(std::uint64_t n, size("maxProperties", v));
  if (!negated) return Shapes{{.object = {.max = n}}};
  return Shapes{{.types = Shape::kObject, .object = {.min = n + 1}}};
}

Result<Shapes> Keywords::dependent_required(const json::value& v, bool negated) {
  VT_TRY(const json::object* all, object("dependentRequired", v));
  Shapes out;
  if (!negated) out.push_back(any());
  for (const auto& [key, value] : *all) {
    VT_TRY(std::vector<std::string> wanted, names("dependentRequired", value));
    const std::string name(key);
    if (negated) {
      for (const std::string& other : wanted) {
        Shape one = SchemaReader::without_member(other);
        one.object.required = {name};
        VT_RETURN_IF_ERROR(append(out, {one}));
      }
      continue;
    }
    Shape absent = SchemaReader::without_member(name), present = of_type(Shape::kObject);
    absent.types = Shape::kAll;
    present.object.required = {name};
    for (const std::string& other : wanted)
      if (other != name) present.object.required.push_back(other);
    VT_TRY(out, reader_.meet(out, {absent, present}));
  }
  return out;
}

Result<Shapes> Keywords::dependent_schemas(const json::value& v, bool negated) {
  VT_TRY(const json::object* all, object("dependentSchemas", v));
  Shapes out;
  if (!negated) out.push_back(any());
  for (const auto& [key, schema] : *all) {
    const std::string name(key);
    Shape present = of_type(Shape::kObject);
    present.object.required = {name};
    VT_TRY(const Shapes* inner, shapes_of(schema, negated));
    VT_TRY(Shapes both, reader_.meet({present}, *inner));
    if (negated) {
      VT_RETURN_IF_ERROR(append(out, both));
      continue;
    }
    both.push_back(SchemaReader::without_member(name));
    both.back().types = Shape::kAll;
    VT_TRY(out, reader_.meet(out, both));
  }
  return out;
}

}  // namespace vitrine::grammar
