#include <algorithm>

#include "base/utf8.h"
#include "grammar/schema_keywords.h"

namespace vitrine::grammar {

Need need_of(const json::value& schema, bool negated) {
  if (schema.is_bool()) return schema.get_bool() == negated ? kNever : Need{};
  if (!negated && is_trivial(schema)) return {};
  return {{negated ? Demand::Kind::kNotSchema : Demand::Kind::kSchema, &schema}};
}

bool is_trivial(const json::value& schema) {
  if (schema.is_bool()) return schema.get_bool();
  return schema.is_object() && schema.get_object().empty();
}

std::span<const Keywords::Known> Keywords::known() {
  using K = Keywords;
  static constexpr Known kKnown[] = {
      {"$anchor", nullptr},
      {"$comment", nullptr},
      {"$defs", nullptr},
      {"$dynamicAnchor", nullptr},
      {"$dynamicRef", &K::cannot},
      {"$id", &K::id},
      {"$ref", &K::ref},
      {"$schema", &K::schema_uri},
      {"$vocabulary", &K::cannot},
      {"additionalProperties", &K::additional_properties},
      {"allOf", &K::all_of},
      {"anyOf", &K::any_of},
      {"const", &K::constant},
      {"contains", &K::contains},
      {"contentEncoding", nullptr},
      {"contentMediaType", nullptr},
      {"contentSchema", nullptr},
      {"default", nullptr},
      {"definitions", nullptr},
      {"dependentRequired", &K::dependent_required},
      {"dependentSchemas", &K::dependent_schemas},
      {"deprecated", nullptr},
      {"description", nullptr},
      {"discriminator", nullptr},  // OpenAPI's; "oneOf" says the same
      {"else", nullptr},           // of "if"
      {"enum", &K::enumeration},
      {"example", nullptr},
      {"examples", nullptr},
      {"exclusiveMaximum", &K::exclusive_maximum},
      {"exclusiveMinimum", &K::exclusive_minimum},
      {"format", &K::format},
      {"if", &K::if_then_else},
      {"items", &K::items},
      {"maxContains", nullptr},  // of "contains"
      {"maxItems", &K::max_items},
      {"maxLength", &K::max_length},
      {"maxProperties", &K::max_properties},
      {"maximum", &K::maximum},
      {"minContains", nullptr},  // of "contains"
      {"minItems", &K::min_items},
      {"minLength", &K::min_length},
      {"minProperties", &K::min_properties},
      {"minimum", &K::minimum},
      {"multipleOf", &K::multiple_of},
      {"not", &K::negation},
      {"oneOf", &K::one_of},
      {"pattern", &K::pattern},
      {"patternProperties", &K::pattern_properties},
      {"prefixItems", &K::prefix_items},
      {"properties", &K::properties},
      {"propertyNames", &K::property_names},
      {"readOnly", nullptr},
      {"required", &K::required},
      {"then", nullptr},  // of "if"
      {"title", nullptr},
      {"type", &K::type},
      {"unevaluatedItems", &K::unevaluated_items},
      {"unevaluatedProperties", &K::unevaluated_properties},
      {"uniqueItems", &K::unique_items},
      {"writeOnly", nullptr},
  };
  return kKnown;
}

Result<Shapes> Keywords::read(bool negated) {
  Shapes out;
  if (!negated) out.push_back({});
  for (const auto& [key, value] : schema_) {
    const std::string_view name = key;
    if (name.starts_with("x-")) continue;  // a vendor extension
    auto it = std::find_if(known().begin(), known().end(),
                           [&](const Known& k) { return k.name == name; });
    if (it == known().end()) return reader_.refuse(name, "is not a keyword that can be enforced");
    if (it->handler == nullptr) continue;
    keyword_ = it->name;
    VT_TRY(Shapes one, (this->*it->handler)(value, negated));
    if (negated) {
      VT_RETURN_IF_ERROR(append(out, one));
    } else {
      VT_TRY(out, reader_.meet(out, one));
    }
  }
  return out;
}

Error Keywords::invalid(std::string_view keyword, const json::value& found,
                        std::string_view allowed) const {
  return make_error(ErrorCode::kInvalid, "{}: \"{}\": found {}, allowed {}", reader_.what_, keyword,
                    shortened(to_json(found), 100), allowed);
}

Error Keywords::cannot_negate(std::string_view keyword) const {
  return reader_.refuse(keyword, "cannot be enforced under \"not\", \"if\" or \"oneOf\"");
}

Result<const json::object*> Keywords::object(std::string_view keyword, const json::value& v) const {
  if (!v.is_object()) return invalid(keyword, v, "an object");
  if (v.get_object().size() > kMaxProperties)
    return make_error(ErrorCode::kTooLarge, "{}: \"{}\": found {} members, allowed up to {}",
                      reader_.what_, keyword, v.get_object().size(), kMaxProperties);
  return &v.get_object();
}

Result<const json::array*> Keywords::list(std::string_view keyword, const json::value& v) const {
  if (!v.is_array()) return invalid(keyword, v, "a list");
  return &v.get_array();
}

Result<std::vector<std::string>> Keywords::names(std::string_view keyword,
                                                 const json::value& v) const {
  VT_TRY(const json::array* all, list(keyword, v));
  std::vector<std::string> out;
  for (const json::value& name : *all) {
    if (!name.is_string()) return invalid(keyword, name, "names");
    out.emplace_back(name.get_string());
  }
  return out;
}

Result<const Shapes*> Keywords::shapes_of(const json::value& schema, bool negated) {
  return reader_.shapes(need_of(schema, negated));
}

Status Keywords::append(Shapes& out, const Shapes& more) const {
  out.insert(out.end(), more.begin(), more.end());
  if (out.size() > kMaxShapes)
    return reader_.refuse(keyword_, fmt::format("gives more than {} alternatives", kMaxShapes));
  return Ok{};
}

Result<Shapes> Keywords::all_of(const json::value& v, bool negated) {
  VT_TRY(const json::array* all, list(keyword_, v));
  Shapes out;
  if (!negated) out.push_back({});
  for (const json::value& schema : *all) {
    VT_TRY(const Shapes* one, shapes_of(schema, negated));
    if (negated) {
      VT_RETURN_IF_ERROR(append(out, *one));
    } else {
      VT_TRY(out, reader_.meet(out, *one));
    }
  }
  return out;
}

// By de Morgan.
Result<Shapes> Keywords::any_of(const json::value& v, bool negated) {
  VT_TRY(const json::array* all, list(keyword_, v));
  Shapes out;
  if (negated) out.push_back({});
  for (const json::value& schema : *all) {
    VT_TRY(const Shapes* one, shapes_of(schema, negated));
    if (negated) {
      VT_TRY(out, reader_.meet(out, *one));
    } else {
      VT_RETURN_IF_ERROR(append(out, *one));
    }
  }
  return out;
}

// One alternative minus the others, where they overlap. Negated: none of them, or at least two.
Result<Shapes> Keywords::one_of(const json::value& v, bool negated) {
  VT_TRY(const json::array* all, list(keyword_, v));
  Shapes out, none{Shape{}};
  for (std::size_t i = 0; i < all->size(); ++i) {
    VT_TRY(const Shapes* one, shapes_of((*all)[i], false));
    Shapes alone = *one;
    for (std::size_t j = 0; j < all->size(); ++j) {
      if (i == j) continue;
      VT_TRY(const Shapes* other, shapes_of((*all)[j], false));
      VT_TRY(Shapes common, reader_.meet(*one, *other));
      VT_TRY(bool disjoint, reader_.surely_empty(common));
      if (negated && i < j) VT_RETURN_IF_ERROR(append(out, common));
      if (disjoint || negated) continue;
      VT_TRY(const Shapes* without, shapes_of((*all)[j], true));
      VT_TRY(alone, reader_.meet(alone, *without));
    }
    if (!negated) VT_RETURN_IF_ERROR(append(out, alone));
    if (negated) {
      VT_TRY(const Shapes* without, shapes_of((*all)[i], true));
      VT_TRY(none, reader_.meet(none, *without));
    }
  }
  if (negated) VT_RETURN_IF_ERROR(append(out, none));
  return out;
}

Result<Shapes> Keywords::negation(const json::value& v, bool negated) {
  VT_TRY(const Shapes* out, shapes_of(v, !negated));
  return *out;
}

Result<Shapes> Keywords::if_then_else(const json::value& v, bool negated) {
  const json::value *then = find("then"), *otherwise = find("else");
  Shapes out;
  for (bool holds : {true, false}) {
    const json::value* branch = holds ? then : otherwise;
    if (branch == nullptr && negated) continue;
    if (then == nullptr && otherwise == nullptr) return Shapes{Shape{}};
    VT_TRY(const Shapes* condition, shapes_of(v, !holds));
    Shapes part = *condition;
    if (branch != nullptr) {
      VT_TRY(const Shapes* inner, shapes_of(*branch, negated));
      VT_TRY(part, reader_.meet(part, *inner));
    }
    VT_RETURN_IF_ERROR(append(out, part));
  }
  return out;
}

Result<Shapes> Keywords::ref(const json::value& v, bool negated) {
  if (!v.is_string()) return invalid("$ref", v, "a reference");
  VT_TRY(const json::value* target, reader_.resolve(v.get_string()));
  VT_TRY(const Shapes* out, shapes_of(*target, negated));
  return *out;
}

Result<Shapes> Keywords::cannot(const json::value&, bool) {
  return reader_.refuse(keyword_, "cannot be enforced while text is generated");
}

}  // namespace vitrine::grammar
