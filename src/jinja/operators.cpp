#include "jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "jinja/chars.h"

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

Value add(const Value& a, const Value& b, Budget& budget) {
  const Text *x = a.if_string(), *y = b.if_string();
  if (x != nullptr && y != nullptr) {
    budget.make(x->size() + y->size());
    bool html = x->html() || y->html();
    Text out = html ? escape_html(*x) : *x;
    out.append(html ? escape_html(*y) : *y);
    return out;
  }
  const Sequence *s = a.if_sequence(), *t = b.if_sequence();
  if (s == nullptr || t == nullptr || s->kind != t->kind || s->kind > Sequence::Kind::kTuple)
    fail_types("+", a, b);
  budget.step(static_cast<std::int64_t>(s->items.size() + t->items.size()));
  std::vector<Value> items = s->items;
  items.insert(items.end(), t->items.begin(), t->items.end());
  return make_list(std::move(items), s->kind);
}

Value repeat(const Value& value, Int times, Budget& budget) {
  times = std::clamp<Int>(times, 0, 1 << 30);
  if (const Text* text = value.if_string()) {
    budget.make(text->size() * static_cast<std::size_t>(times));
    Text out;
    for (Int i = 0; i < times && !text->empty(); ++i) out.append(*text);
    return out;
  }
  const Sequence& s = *value.if_sequence();
  budget.step(static_cast<std::int64_t>(s.items.size()) * static_cast<std::int64_t>(times));
  std::vector<Value> items;
  for (Int i = 0; i < times && !s.items.empty(); ++i)
    items.insert(items.end(), s.items.begin(), s.items.end());
  return make_list(std::move(items), s.kind);
}

bool repeatable(const Value& v) {
  const Sequence* s = v.if_sequence();
  return v.is_string() || (s != nullptr && s->kind <= Sequence::Kind::kTuple);
}

int sign(auto a, auto b) { return a < b ? -1 : a > b ? 1 : 0; }

}  // namespace

Value binary(std::string_view op, const Value& a, const Value& b, Budget& budget) {
  need(a), need(b);
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return float_binary(op, a.as_double(), b.as_double());
    return int_binary(op, a.as_int(), b.as_int());
  }
  if (op == "+") return add(a, b, budget);
  auto integer = [](const Value& v) { return v.is_int() || v.is_bool(); };
  if (op == "*" && repeatable(a) && integer(b)) return repeat(a, b.as_int(), budget);
  if (op == "*" && repeatable(b) && integer(a)) return repeat(b, a.as_int(), budget);
  if (op == "%" && a.is_string()) return format_percent(*a.if_string(), b, budget);
  fail_types(op, a, b);
}

Value negate(const Value& value) {
  need(value);
  if (value.is_float()) return -value.as_double();
  if (!value.is_number()) fail("bad operand type for unary -: '{}'", value.type_name());
  return -value.as_int();
}

int compare(const Value& a, const Value& b) {
  need(a), need(b);
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return sign(a.as_double(), b.as_double());
    return sign(a.as_int(), b.as_int());
  }
  if (a.is_string() && b.is_string())
    return sign(a.if_string()->view().compare(b.if_string()->view()), 0);
  const Sequence *s = a.if_sequence(), *t = b.if_sequence();
  if (s == nullptr || t == nullptr || s->kind != t->kind || s->kind > Sequence::Kind::kTuple)
    fail("'<' not supported between instances of '{}' and '{}'", a.type_name(), b.type_name());
  for (std::size_t i = 0; i < std::min(s->items.size(), t->items.size()); ++i)
    if (!equal(s->items[i], t->items[i])) return compare(s->items[i], t->items[i]);
  return sign(s->items.size(), t->items.size());
}

bool contains(const Value& container, const Value& item, Budget& budget) {
  if (const Text* text = container.if_string()) {
    if (!item.is_string()) fail("'in <string>' requires a string, found '{}'", item.type_name());
    budget.step(static_cast<std::int64_t>(text->size() / 64 + 1));
    return text->view().find(item.if_string()->view()) != std::string_view::npos;
  }
  if (const Dict* dict = container.if_dict()) {
    if (!Dict::hashable(item)) fail("unhashable type: '{}'", item.type_name());
    return dict->find(item) != nullptr;
  }
  if (Sequence* s = container.if_sequence()) {
    budget.step(static_cast<std::int64_t>(s->items.size()));
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
