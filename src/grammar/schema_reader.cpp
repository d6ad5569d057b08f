#include <algorithm>

#include "base/utf8.h"
#include "grammar/json_text.h"
#include "grammar/numerals.h"
#include "grammar/schema_keywords.h"

namespace vitrine::grammar {
namespace {

// One of the steps of a JSON pointer, unescaped; none where it is malformed.
std::optional<std::string> unescape(std::string_view token) {
  std::string percent;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '%') {
      percent += token[i];
      continue;
    }
    unsigned value = 0;
    if (i + 2 >= token.size() ||
        sscanf(std::string(token.substr(i + 1, 2)).c_str(), "%2x", &value) != 1)
      return std::nullopt;
    percent += static_cast<char>(value);
    i += 2;
  }
  std::string out;
  for (std::size_t i = 0; i < percent.size(); ++i) {
    if (percent[i] != '~') {
      out += percent[i];
    } else if (i + 1 < percent.size() && (percent[i + 1] == '0' || percent[i + 1] == '1')) {
      out += percent[++i] == '0' ? '~' : '/';
    } else {
      return std::nullopt;
    }
  }
  return out;
}

const json::value* member(const json::value& parent, const std::string& name) {
  if (const json::object* object = parent.if_object()) return object->if_contains(name);
  const json::array* array = parent.if_array();
  if (array == nullptr || name.empty() || name.size() > 9 ||
      name.find_first_not_of("0123456789") != std::string::npos)
    return nullptr;
  return array->if_contains(std::stoul(name));
}

// The schema with that anchor, anywhere in the document; what only looks like a schema is left out.
// None, too, when the budget is spent.
const json::value* find_anchor(const json::value& in, std::string_view name, Budget& budget) {
  if (!budget.spend(1)) return nullptr;
  if (const json::array* array = in.if_array()) {
    for (const json::value& item : *array)
      if (const json::value* found = find_anchor(item, name, budget)) return found;
  }
  const json::object* object = in.if_object();
  if (object == nullptr) return nullptr;
  for (const char* keyword : {"$anchor", "$dynamicAnchor"})
    if (const json::value* anchor = object->if_contains(keyword);
        anchor && anchor->is_string() && anchor->get_string() == name)
      return &in;
  for (const auto& [key, value] : *object) {
    if (key == "const" || key == "enum" || key == "default" || key == "examples") continue;
    if (const json::value* found = find_anchor(value, name, budget)) return found;
  }
  return nullptr;
}

}  // namespace

Result<const json::value*> SchemaReader::resolve(std::string_view reference) {
  auto fail = [&](std::string_view why) {
    return refuse("$ref", fmt::format("\"{}\" {}", shortened(reference, 100), why));
  };
  if (!budget_.spend(reference.size())) return budget_.exhausted();
  if (!reference.starts_with('#')) return fail("leads out of the schema, which is not followed");
  std::string_view rest = reference.substr(1);
  if (rest.empty()) return &root_;
  if (rest[0] != '/') {
    const json::value* found = find_anchor(root_, rest, budget_);
    if (!budget_.spend(0)) return budget_.exhausted();
    if (found == nullptr) return fail("is an anchor that is not there");
    return found;
  }
  const json::value* at = &root_;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const auto slash = std::min(rest.find('/'), rest.size());
    auto name = unescape(rest.substr(0, slash));
    if (!name) return fail("is not a JSON pointer");
    at = member(*at, *name);
    if (at == nullptr) return fail("leads to nothing");
    rest.remove_prefix(slash);
    const json::object* object = at->if_object();
    if (!rest.empty() && object != nullptr)
      if (const json::value* id = object->if_contains("$id"); id != nullptr && id->is_string())
        return fail("leads through a schema with an \"$id\" of its own");
  }
  return at;
}

Result<Shapes> SchemaReader::expand(const Demand& demand) {
  using Kind = Demand::Kind;
  if (demand.kind == Kind::kNever) return Shapes{};
  if (demand.kind == Kind::kConst || demand.kind == Kind::kNotConst)
    return expand_const(*demand.value, demand.kind == Kind::kNotConst);
  return expand_schema(*demand.value, demand.kind == Kind::kNotSchema);
}

Result<Shapes> SchemaReader::expand_schema(const json::value& schema, bool negated) {
  if (schema.is_bool()) return schema.get_bool() != negated ? Shapes{Shape{}} : Shapes{};
  if (!schema.is_object())
    return make_error(ErrorCode::kInvalid,
                      "{}: found {} where a schema belongs, which is an object "
                      "or a boolean",
                      what_, shortened(to_json(schema), 100));
  const std::pair<const json::value*, bool> self{&schema, negated};
  if (std::find(active_.begin(), active_.end(), self) != active_.end())
    return refuse("$ref", "leads back to where it started");
  if (active_.size() >= kMaxSchemaDepth)
    return refuse("$ref", fmt::format("and the like are nested deeper than {}", kMaxSchemaDepth));
  active_.push_back(self);
  auto out = Keywords(*this, schema).read(negated);
  active_.pop_back();
  return out;
}

Result<Shapes> SchemaReader::expand_const(const json::value& value, bool negated) {
  json::array one{value};
  // Scalars are handled together; demands on parts of containers are identified by their address.
  if (!value.is_array() && !value.is_object()) return scalars(one, negated);
  Shape same{.types = value.is_array() ? Shape::kArray : Shape::kObject};
  Shapes differ{{.types = static_cast<std::uint8_t>(Shape::kAll & ~same.types)}};
  const auto size = value.is_array() ? value.get_array().size() : value.get_object().size();
  if (size > kMaxProperties) return refuse("const", "has too many parts");
  if (const json::array* array = value.if_array()) {
    same.array.min = same.array.max = size;
    if (size > 0) differ.push_back({.types = Shape::kArray, .array = {.max = size - 1}});
    differ.push_back({.types = Shape::kArray, .array = {.min = size + 1}});
    for (std::size_t i = 0; i < size; ++i) {
      same.array.first.push_back({{Demand::Kind::kConst, &(*array)[i]}});
      Shape& other = differ.emplace_back(Shape{.types = Shape::kArray});
      other.array.min = other.array.max = size;
      other.array.first.assign(i, {});
      other.array.first.push_back({{Demand::Kind::kNotConst, &(*array)[i]}});
    }
  } else {
    Shape::Group group{.other = kNever};
    Shape more{.types = Shape::kObject, .object = {.min = size + 1}};
    for (const auto& [key, part] : value.get_object()) {
      const std::string name(key);
      group.named.emplace_back(name, Need{{Demand::Kind::kConst, &part}});
      same.object.required.push_back(name);
      more.object.required.push_back(name);
      differ.push_back(without_member(name));
      Shape& other = differ.emplace_back(Shape{.types = Shape::kObject});
      other.object.required = {name};
      other.object.add({.named = {{name, {{Demand::Kind::kNotConst, &part}}}}});
    }
    same.object.add(std::move(group));
    differ.push_back(more);
  }
  if (negated && differ.size() > kMaxShapes)
    return refuse("not", "of so large a value is not supported");
  return negated ? differ : Shapes{same};
}

Shape SchemaReader::without_member(const std::string& name) {
  Shape out{.types = Shape::kObject};
  out.object.add({.named = {{name, kNever}}});
  return out;
}

Result<Shapes> SchemaReader::scalars(const json::array& values, bool negated) {
  Shape in{.types = 0};
  std::vector<std::string> strings;
  Dfa numbers;
  for (const json::value& v : values) {
    if (v.is_null()) in.types |= Shape::kNull;
    if (v.is_bool()) in.types |= v.get_bool() ? Shape::kTrue : Shape::kFalse;
    if (v.is_string()) strings.emplace_back(v.get_string());
    if (!v.is_number()) continue;
    VT_TRY(Decimal number, to_decimal(v));
    VT_TRY(Dfa one, compared(number, false, true, false, budget_));
    VT_TRY(numbers, unite(numbers, one, budget_));
  }
  VT_TRY(Dfa text, texts(strings, budget_));
  text.minimize(budget_);
  if (negated) {
    VT_TRY(Dfa all_text, any_text(budget_));
    VT_TRY(text, subtract(all_text, text, budget_));
    VT_TRY(Dfa all, all_numerals(budget_));
    VT_TRY(numbers, subtract(all, numbers, budget_));
    in.types = static_cast<std::uint8_t>(Shape::kAll & ~in.types);
  }
  if (!negated && !strings.empty()) in.types |= Shape::kString;
  if (!negated && !numbers.empty()) in.types |= Shape::kNumber;
  // An automaton that accepts every value of a type is dropped.
  if (!negated || !strings.empty()) in.text = std::make_shared<const Dfa>(std::move(text));
  const bool some_number =
      std::any_of(values.begin(), values.end(), [](auto& v) { return v.is_number(); });
  if (!negated || some_number) in.number = std::make_shared<const Dfa>(std::move(numbers));
  return Shapes{in};
}

}  // namespace vitrine::grammar
