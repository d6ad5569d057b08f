// Attributes, items, slices and iteration. Templates reach nothing of the host: an attribute is a
// key of a dict, a method of our tables, or something an Object names.
#include <algorithm>

#include "base/utf8.h"
#include "jinja/objects.h"

namespace vitrine::jinja {
namespace {

std::string described(const Value& object) {
  return object.is_none() ? "None" : fmt::format("{} object", object.type_name());
}

Value char_at(const Text& text, const CharIndex& index, std::size_t i) {
  return text.substr(index.at(i), index.at(i + 1));
}

std::optional<std::size_t> position(const Value& key, std::size_t size) {
  if (!key.is_int() && !key.is_bool()) return std::nullopt;
  Int at = key.as_int(), count = static_cast<Int>(size);
  if (at < 0) at += count;
  if (at < 0 || at >= count) return std::nullopt;
  return static_cast<std::size_t>(at);
}

bool is_hidden(std::string_view name) { return name.starts_with("__") && name.ends_with("__"); }

// A method as a value, or why there is none.
std::optional<Value> method_value(Interpreter& run, const Value& object, std::string_view name) {
  if (is_hidden(name) || is_mutator(object, name))
    return Value::undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe.", name,
                                        object.type_name()));
  if (Method method = find_method(object, name)) return run.own<BoundMethod>(object, method);
  return std::nullopt;
}

std::optional<Value> item_of(const Value& object, const Value& key) {
  if (const Dict* dict = object.if_dict()) {
    const Value* value = Dict::hashable(key) ? dict->find(key) : nullptr;
    if (value != nullptr) return *value;
  } else if (const Text* text = object.if_string()) {
    CharIndex index(text->view());
    if (auto at = position(key, index.count())) return char_at(*text, index, *at);
  } else if (const Sequence* s = object.if_sequence(); s && s->kind <= Sequence::Kind::kRange) {
    if (auto at = position(key, s->items.size())) return s->items[*at];
  }
  return std::nullopt;
}

}  // namespace

Value Interpreter::get_attribute(const Value& object, std::string_view name) {
  charge(1 + name.size() / 64);
  need(object);
  if (auto method = method_value(*this, object, name)) return *method;
  if (Object* own = object.if_object()) {
    if (auto value = own->attribute(*this, name)) return *value;
  } else if (const Dict* dict = object.if_dict()) {
    if (const Value* value = dict->find(name)) return *value;
  } else if (const Sequence* s = object.if_sequence(); s != nullptr && s->group) {
    if (name == "grouper") return s->items[0];
    if (name == "list") return s->items[1];
  }
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", described(object), name));
}

Value Interpreter::get_item(const Value& object, const Value& key) {
  charge(1);
  need(object);
  if (auto value = item_of(object, key)) return *value;
  if (const Text* name = key.if_string()) {
    if (auto method = method_value(*this, object, name->view())) return *method;
    if (Object* own = object.if_object())
      if (auto value = own->attribute(*this, name->view())) return *value;
    return Value::undefined(
        fmt::format("'{}' has no attribute '{}'", described(object), name->view()));
  }
  return Value::undefined(fmt::format("{} has no element {}", described(object), repr(key).view()));
}

std::vector<Value> Interpreter::iterate(const Value& value) {
  std::vector<Value> out;
  if (const Text* text = value.if_string()) {
    CharIndex index(text->view());
    charge_bytes(index.count() * sizeof(Value));
    for (std::size_t i = 0; i < index.count(); ++i) out.push_back(char_at(*text, index, i));
  } else if (Sequence* s = value.if_sequence()) {
    charge_bytes((s->items.size() - s->next) * sizeof(Value));
    out.assign(s->items.begin() + static_cast<std::ptrdiff_t>(s->next), s->items.end());
    if (s->kind == Sequence::Kind::kGenerator) s->next = s->items.size();
  } else if (const Dict* dict = value.if_dict()) {
    charge_bytes(dict->size() * sizeof(Value));
    for (const auto& [key, item] : dict->items()) out.push_back(key);
  } else if (!value.is_undefined()) {
    fail("'{}' object is not iterable", value.type_name());
  }
  return out;
}

Slice slice_of(std::size_t size, const Value& begin, const Value& end, const Value& step) {
  auto number = [](const Value& v, Int otherwise) {
    if (v.is_none()) return otherwise;
    need(v);
    if (!v.is_int() && !v.is_bool()) fail("slice indices must be integers or None");
    return v.as_int();
  };
  Int stride = number(step, 1), count = static_cast<Int>(size);
  if (stride == 0) fail("slice step cannot be zero");
  stride = std::clamp<Int>(stride, -count - 1, count + 1);
  bool back = stride < 0;
  auto bound = [&](const Value& v, Int otherwise) {
    Int at = number(v, otherwise);
    if (v.is_none()) return at;
    if (at < 0) at = std::max<Int>(at, -count - 1) + count;
    return std::clamp<Int>(at, back ? -1 : 0, back ? count - 1 : count);
  };
  Int from = bound(begin, back ? count - 1 : 0), to = bound(end, back ? -1 : count);
  Int distance = back ? from - to : to - from, width = back ? -stride : stride;
  if (distance <= 0) return {};
  return {from, stride, static_cast<std::size_t>((distance + width - 1) / width)};
}

Value Interpreter::eval_slice(const Expr& expr) {
  Value object = eval(*expr.items[0]);
  Value bounds[3];
  for (int i = 0; i < 3; ++i)
    if (expr.items[static_cast<std::size_t>(i) + 1])
      bounds[i] = eval(*expr.items[static_cast<std::size_t>(i) + 1]);
  at_ = expr.at;
  need(object);
  if (const Text* text = object.if_string()) {
    CharIndex index(text->view());
    Slice slice = slice_of(index.count(), bounds[0], bounds[1], bounds[2]);
    Text out;
    if (slice.count > 0 && slice.stride == 1)
      out.append(*text, index.at(slice[0]), index.at(slice[slice.count]));
    else
      for (std::size_t i = 0; i < slice.count; ++i)
        out.append(*text, index.at(slice[i]), index.at(slice[i] + 1));
    return out;
  }
  const Sequence* s = object.if_sequence();
  if (s == nullptr || s->kind > Sequence::Kind::kRange)
    return Value::undefined(fmt::format("'{}' cannot be sliced", described(object)));
  Slice slice = slice_of(s->items.size(), bounds[0], bounds[1], bounds[2]);
  std::vector<Value> items;
  for (std::size_t i = 0; i < slice.count; ++i) items.push_back(s->items[slice[i]]);
  return make_list(std::move(items),
                   s->kind == Sequence::Kind::kRange ? Sequence::Kind::kList : s->kind);
}

}  // namespace vitrine::jinja
