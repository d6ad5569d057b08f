#include "jinja/value.h"

#include <algorithm>
#include <cmath>

#include "jinja/object.h"

namespace vitrine::jinja {
namespace {

constexpr std::size_t kIndexFrom = 12;  // entries of a dict that make an index worth it

bool equal_text(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  charge_read(a.size());
  return a == b;
}

void append_part(std::string& out, std::string_view part) {
  charge_bytes(part.size());
  out += part;
}

void append_key(std::string& out, std::string_view text) {
  append_part(out, fmt::format("s{}:", text.size()));
  append_part(out, text);
}

// Equal keys have equal texts.
void append_key(std::string& out, const Value& key) {
  if (const Text* text = key.if_string()) {
    append_key(out, text->view());
  } else if (key.is_bool() || key.is_int()) {
    append_part(out, fmt::format("n{};", key.as_int()));
  } else if (key.is_float()) {
    double x = key.as_double();
    if (std::abs(x) < 1e18 && x == std::floor(x))
      append_part(out, fmt::format("n{};", static_cast<Int>(x)));
    else
      append_part(out, fmt::format("f{};", x));
  } else if (const Sequence* tuple = key.if_sequence()) {
    append_part(out, "(");
    for (const Value& item : tuple->items) append_key(out, item);
    append_part(out, ")");
  } else if (Object* object = key.if_object()) {
    append_part(out, fmt::format("o{};", static_cast<const void*>(object)));
  } else {
    append_part(out, key.is_none() ? "0" : "u");
  }
}

}  // namespace

// With what the allocation itself takes.
Value::Value(Text text) {
  charge_bytes(sizeof(Text) + 32);
  state_ = std::make_shared<const Text>(std::move(text));
}

Value Value::undefined(std::string message) {
  charge_bytes(sizeof(std::string) + 32 + message.size());
  return Undefined{std::make_shared<const std::string>(std::move(message))};
}

double Value::as_double() const {
  return is_float() ? std::get<double>(state_) : static_cast<double>(as_int());
}

bool Value::same(const Value& other) const {
  if (state_.index() != other.state_.index()) return false;
  if (is_number() || is_none()) return equal(*this, other);
  if (is_string()) return if_string() == other.if_string();
  if (if_sequence() != nullptr) return if_sequence() == other.if_sequence();
  if (if_dict() != nullptr) return if_dict() == other.if_dict();
  return if_object() == other.if_object();
}

bool Value::truthy() const {
  if (is_bool()) return as_bool();
  if (is_int()) return as_int() != 0;
  if (is_float()) return as_double() != 0;
  if (const Text* text = if_string()) return !text->empty();
  if (const Sequence* s = if_sequence())
    return s->kind == Sequence::Kind::kGenerator || !s->items.empty();
  if (const Dict* dict = if_dict()) return dict->size() > 0;
  return if_object() != nullptr;
}

const char* Value::type_name() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (is_bool()) return "bool";
  if (is_int()) return "int";
  if (is_float()) return "float";
  if (is_string()) return "str";
  if (if_dict() != nullptr) return "dict";
  if (const Sequence* s = if_sequence()) {
    switch (s->kind) {
      case Sequence::Kind::kList:
        return "list";
      case Sequence::Kind::kTuple:
        return "tuple";
      case Sequence::Kind::kRange:
        return "range";
      default:
        return s->name.c_str();
    }
  }
  return if_object()->type_name();
}

int Value::depth() const {
  if (const Sequence* s = if_sequence()) return s->depth;
  if (const Dict* dict = if_dict()) return dict->depth();
  return 0;
}

Value make_list(std::vector<Value> items, Sequence::Kind kind, std::string name) {
  charge_bytes(sizeof(Sequence) + 32 + items.size() * sizeof(Value));
  auto out = std::make_shared<Sequence>();
  for (const Value& item : items) out->depth = std::max(out->depth, item.depth() + 1);
  out->kind = kind;
  out->items = std::move(items);
  out->name = std::move(name);
  check_depth(out->depth);
  return out;
}

bool Dict::hashable(const Value& key) {
  charge();
  if (key.if_dict() != nullptr) return false;
  const Sequence* s = key.if_sequence();
  if (s == nullptr || s->kind != Sequence::Kind::kTuple) return s == nullptr;
  return std::all_of(s->items.begin(), s->items.end(), hashable);
}

std::size_t Dict::index_of(const Value& key) const {
  if (index_.empty()) {
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (equal(items_[i].first, key)) return i;
    return items_.size();
  }
  std::string text;
  append_key(text, key);
  auto found = index_.find(text);
  return found == index_.end() ? items_.size() : found->second;
}

const Value* Dict::find(const Value& key) const {
  std::size_t i = index_of(key);
  return i < items_.size() ? &items_[i].second : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  if (index_.empty()) {
    for (const auto& [name, value] : items_) {
      const Text* text = name.if_string();
      if (text != nullptr && equal_text(text->view(), key)) return &value;
    }
    return nullptr;
  }
  std::string text;
  append_key(text, key);
  auto found = index_.find(text);
  return found == index_.end() ? nullptr : &items_[found->second].second;
}

void Dict::set(Value key, Value value) {
  depth_ = std::max({depth_, key.depth() + 1, value.depth() + 1});
  check_depth(depth_);
  constexpr std::size_t kBytes = 2 * sizeof(Value) + 64;  // with the node of the index
  if (!index_.empty()) {
    std::string text;
    append_key(text, key);
    auto [at, added] = index_.try_emplace(std::move(text), items_.size());
    if (!added) {
      items_[at->second].second = std::move(value);
      return;
    }
    charge_bytes(kBytes);
    items_.emplace_back(std::move(key), std::move(value));
    return;
  }
  if (std::size_t i = index_of(key); i < items_.size()) {
    items_[i].second = std::move(value);
    return;
  }
  charge_bytes(kBytes);
  items_.emplace_back(std::move(key), std::move(value));
  if (items_.size() < kIndexFrom) return;
  index_.reserve(items_.capacity());
  for (std::size_t k = 0; k < items_.size(); ++k) {
    std::string text;
    append_key(text, items_[k].first);
    index_.emplace(std::move(text), k);
  }
}

Value make_dict(Dict dict) {
  charge_bytes(sizeof(Dict) + 32);
  return std::make_shared<const Dict>(std::move(dict));
}

Value from_json(const json::value& value, bool caller, std::int32_t source) {
  switch (value.kind()) {
    case json::kind::null:
      return None{};
    case json::kind::bool_:
      return value.get_bool();
    case json::kind::int64:
      return static_cast<Int>(value.get_int64());
    case json::kind::uint64:
      return static_cast<Int>(value.get_uint64());
    case json::kind::double_:
      return value.get_double();
    case json::kind::string:
      return Text(std::string(value.get_string()), caller, source);
    case json::kind::array: {
      std::vector<Value> items;
      for (const json::value& item : value.get_array())
        items.push_back(from_json(item, caller, source));
      return make_list(std::move(items));
    }
    default: {
      Dict dict;
      dict.reserve(value.get_object().size());
      for (const auto& [key, item] : value.get_object())
        dict.set(Text(std::string(key), caller, source), from_json(item, caller, source));
      return make_dict(std::move(dict));
    }
  }
}

namespace {

bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.items().begin(), a.items().end(), [&](const auto& item) {
    const Value* other = b.find(item.first);
    return other != nullptr && equal(item.second, *other);
  });
}

}  // namespace

bool equal(const Value& a, const Value& b) {
  charge();
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return a.as_double() == b.as_double();
    return a.as_int() == b.as_int();
  }
  if (const Text* x = a.if_string()) {
    const Text* y = b.if_string();
    return y != nullptr && equal_text(x->view(), y->view());
  }
  if (const Sequence* x = a.if_sequence()) {
    const Sequence* y = b.if_sequence();
    if (y == nullptr || x->kind != y->kind) return false;
    return x == y || (x->kind != Sequence::Kind::kGenerator && equal_items(x->items, y->items));
  }
  if (const Dict* x = a.if_dict()) {
    const Dict* y = b.if_dict();
    return y != nullptr && (x == y || equal_dicts(*x, *y));
  }
  if (a.if_object() != nullptr) return a.if_object() == b.if_object();
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

}  // namespace vitrine::jinja
