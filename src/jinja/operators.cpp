#include "jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "jinja/chars.h"
#include "jinja/string_ops.h"

namespace vitrine::jinja {
namespace {

[[noreturn]] void fail_types(std::string_view op, const Value& a, const Value& b) {
  fail("unsupported operand types for {}: '{}' and '{}'", op, a.type_name(), b.type_name());
}
[[noreturn]] void fail_overflow(std::string_view op) { fail("the result of {} is too large", op); }

// Far enough below the type's limit that negation and adding lengths cannot overflow.
constexpr Int kLargest = Int{1} << 120;

Int floor_div(Int a, Int b) {
  Int q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

Value int_power(Int base, Int exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0.0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  Int out = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(out, base, &out)) fail_overflow("**");
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) fail_overflow("**");
  }
  if (out > kLargest || out < -kLargest) fail_overflow("**");
  return out;
}

Value int_binary(std::string_view op, Int a, Int b) {
  Int out = 0;
  bool overflow = false;
  if (op == "+") {
    overflow = __builtin_add_overflow(a, b, &out);
  } else if (op == "-") {
    overflow = __builtin_sub_overflow(a, b, &out);
  } else if (op == "*") {
    overflow = __builtin_mul_overflow(a, b, &out);
  } else if (op == "**") {
    return int_power(a, b);
  } else {
    if (b == 0) fail("division by zero");
    if (op == "/") return static_cast<double>(a) / static_cast<double>(b);
    out = floor_div(a, b);
    if (op == "%") out = a - out * b;
  }
  if (overflow || out > kLargest || out < -kLargest) fail_overflow(op);
  return out;
}

Value float_binary(std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") return std::pow(a, b);
  if (b == 0) fail("division by zero");
  if (op == "/") return a / b;
  if (op == "//") return std::floor(a / b);
  double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

Value add(const Value& a, const Value& b) {
  const Text *x = a.if_string(), *y = b.if_string();
  if (x != nullptr && y != nullptr) {
    bool html = x->html() || y->html();
    Text out = html ? escape_html(*x) : *x;
    out.append(html ? escape_html(*y) : *y);
    return out;
  }
  const Sequence *s = a.if_sequence(), *t = b.if_sequence();
  if (s == nullptr || t == nullptr || s->kind != t->kind || s->kind > Sequence::Kind::kTuple)
    fail_types("+", a, b);
  std::vector<Value> items = s->items;
  items.insert(items.end(), t->items.begin(), t->items.end());
  return make_list(std::move(items), s->kind);
}

Value repeat(const Value& value, Int times) {
  const Text* text = value.if_string();
  const Sequence* list = value.if_sequence();
  std::size_t size = text != nullptr ? text->size() : list->items.size();
  auto count = static_cast<std::size_t>(size == 0 ? 0 : std::clamp<Int>(times, 0, 1 << 30));
  if (text != nullptr)
    need_room(count * size, count * size);
  else
    need_room(count * size * sizeof(Value));
  charge(count);
  if (text != nullptr) {
    Text out;
    for (std::size_t i = 0; i < count; ++i) out.append(*text);
    return out;
  }
  std::vector<Value> items;
  items.reserve(count * size);
  for (std::size_t i = 0; i < count; ++i)
    items.insert(items.end(), list->items.begin(), list->items.end());
  return make_list(std::move(items), list->kind);
}

bool repeatable(const Value& v) {
  const Sequence* s = v.if_sequence();
  return v.is_string() || (s != nullptr && s->kind <= Sequence::Kind::kTuple);
}

int sign(auto a, auto b) { return a < b ? -1 : a > b ? 1 : 0; }

}  // namespace

Value binary(std::string_view op, const Value& a, const Value& b) {
  need(a), need(b);
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return float_binary(op, a.as_double(), b.as_double());
    return int_binary(op, a.as_int(), b.as_int());
  }
  if (op == "+") return add(a, b);
  auto integer = [](const Value& v) { return v.is_int() || v.is_bool(); };
  if (op == "*" && repeatable(a) && integer(b)) return repeat(a, b.as_int());
  if (op == "*" && repeatable(b) && integer(a)) return repeat(b, a.as_int());
  if (op == "%" && a.is_string()) return format_percent(*a.if_string(), b);
  fail_types(op, a, b);
}

Value negate(const Value& value) {
  need(value);
  if (value.is_float()) return -value.as_double();
  if (!value.is_number()) fail("bad operand type for unary -: '{}'", value.type_name());
  return -value.as_int();
}

int compare(const Value& a, const Value& b) {
  charge();
  need(a), need(b);
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return sign(a.as_double(), b.as_double());
    return sign(a.as_int(), b.as_int());
  }
  if (const Text* x = a.if_string(), *y = b.if_string(); x != nullptr && y != nullptr) {
    charge_read(std::min(x->size(), y->size()));
    return sign(x->view().compare(y->view()), 0);
  }
  const Sequence *s = a.if_sequence(), *t = b.if_sequence();
  if (s == nullptr || t == nullptr || s->kind != t->kind || s->kind > Sequence::Kind::kTuple)
    fail("'<' not supported between instances of '{}' and '{}'", a.type_name(), b.type_name());
  for (std::size_t i = 0; i < std::min(s->items.size(), t->items.size()); ++i)
    if (!equal(s->items[i], t->items[i])) return compare(s->items[i], t->items[i]);
  return sign(s->items.size(), t->items.size());
}

bool contains(const Value& container, const Value& item) {
  if (const Text* text = container.if_string()) {
    if (!item.is_string()) fail("'in <string>' requires a string, found '{}'", item.type_name());
    return Search(text->view(), item.if_string()->view()).next().has_value();
  }
  if (const Dict* dict = container.if_dict()) {
    if (!Dict::hashable(item)) fail("unhashable type: '{}'", item.type_name());
    return dict->find(item) != nullptr;
  }
  if (Sequence* s = container.if_sequence()) {
    auto begin = s->items.begin() + static_cast<std::ptrdiff_t>(s->next);
    auto found = std::find_if(begin, s->items.end(), [&](auto& x) { return equal(x, item); });
    if (s->kind == Sequence::Kind::kGenerator)
      s->next = static_cast<std::size_t>(found - s->items.begin()) + (found != s->items.end());
    return found != s->items.end();
  }
  if (container.is_undefined()) return false;
  fail("argument of type '{}' is not iterable", container.type_name());
}

}  // namespace vitrine::jinja
