// What may follow `is`.
#include <algorithm>

#include "jinja/chars.h"
#include "jinja/interpreter.h"
#include "jinja/operators.h"

namespace vitrine::jinja {
namespace {

using V = const Value&;

Int integer(V value) {
  need(value);
  if (!value.is_int() && !value.is_bool())
    fail("found '{}', allowed an integer", value.type_name());
  return value.as_int();
}

bool order(V a, Params& params, bool (*accepts)(int)) {
  Value b = params.required("other");
  return accepts(compare(a, b));
}

bool is_case(V value, bool (*right)(char32_t), bool (*wrong)(char32_t)) {
  bool any = false, bad = false;
  map_chars(to_text(value), [&](char32_t c, std::string&) {
    any = any || right(c);
    bad = bad || wrong(c);
  });
  return any && !bad;
}

bool is_iterable(V v) {
  return v.is_string() || v.if_sequence() != nullptr || v.if_dict() != nullptr || v.is_undefined();
}

struct Entry {
  std::string_view name;
  TestFunction run;
};

constexpr Entry kTests[] = {
    {"defined", [](Interpreter&, V v, Params&) { return !v.is_undefined(); }},
    {"undefined", [](Interpreter&, V v, Params&) { return v.is_undefined(); }},
    {"none", [](Interpreter&, V v, Params&) { return v.is_none(); }},
    {"string", [](Interpreter&, V v, Params&) { return v.is_string(); }},
    {"mapping", [](Interpreter&, V v, Params&) { return v.if_dict() != nullptr; }},
    {"iterable", [](Interpreter&, V v, Params&) { return is_iterable(v); }},
    {"sequence",
     [](Interpreter&, V v, Params&) {
       const Sequence* s = v.if_sequence();
       return s != nullptr ? s->kind <= Sequence::Kind::kRange : is_iterable(v);
     }},
    {"number", [](Interpreter&, V v, Params&) { return v.is_number(); }},
    {"integer", [](Interpreter&, V v, Params&) { return v.is_int(); }},
    {"float", [](Interpreter&, V v, Params&) { return v.is_float(); }},
    {"boolean", [](Interpreter&, V v, Params&) { return v.is_bool(); }},
    {"true", [](Interpreter&, V v, Params&) { return v.is_bool() && v.as_bool(); }},
    {"false", [](Interpreter&, V v, Params&) { return v.is_bool() && !v.as_bool(); }},
    {"callable",
     [](Interpreter&, V v, Params&) {
       // Python's Undefined has a __call__.
       return v.is_undefined() || (v.if_object() != nullptr && v.if_object()->callable());
     }},
    {"odd", [](Interpreter&, V v, Params&) { return integer(v) % 2 != 0; }},
    {"even", [](Interpreter&, V v, Params&) { return integer(v) % 2 == 0; }},
    {"divisibleby",
     [](Interpreter&, V v, Params& params) {
       Int by = integer(params.required("num"));
       if (by == 0) fail("division by zero");
       return integer(v) % by == 0;
     }},
    {"in", [](Interpreter&, V v, Params& params) { return contains(params.required("seq"), v); }},
    {"sameas", [](Interpreter&, V v, Params& params) { return v.same(params.required("other")); }},
    {"lower", [](Interpreter&, V v, Params&) { return is_case(v, is_lower, is_upper); }},
    {"upper", [](Interpreter&, V v, Params&) { return is_case(v, is_upper, is_lower); }},
    {"escaped", [](Interpreter&, V v, Params&) { return v.is_string() && v.if_string()->html(); }},
    {"filter",
     [](Interpreter&, V v, Params&) {
       return v.is_string() && find_filter(v.if_string()->view()) != nullptr;
     }},
    {"test", [](Interpreter&, V v,
                Params&) { return v.is_string() && find_test(v.if_string()->view()) != nullptr; }},
};

bool test_eq(Interpreter&, V v, Params& params) { return equal(v, params.required("other")); }
bool test_ne(Interpreter&, V v, Params& params) { return !equal(v, params.required("other")); }
bool test_lt(Interpreter&, V v, Params& params) {
  return order(v, params, [](int o) { return o < 0; });
}
bool test_le(Interpreter&, V v, Params& params) {
  return order(v, params, [](int o) { return o <= 0; });
}
bool test_gt(Interpreter&, V v, Params& params) {
  return order(v, params, [](int o) { return o > 0; });
}
bool test_ge(Interpreter&, V v, Params& params) {
  return order(v, params, [](int o) { return o >= 0; });
}

constexpr Entry kOrders[] = {
    {"eq", test_eq}, {"equalto", test_eq},     {"==", test_eq}, {"ne", test_ne}, {"!=", test_ne},
    {"lt", test_lt}, {"lessthan", test_lt},    {"<", test_lt},  {"le", test_le}, {"<=", test_le},
    {"gt", test_gt}, {"greaterthan", test_gt}, {">", test_gt},  {"ge", test_ge}, {">=", test_ge},
};

}  // namespace

TestFunction find_test(std::string_view name) {
  for (const Entry& entry : kTests)
    if (entry.name == name) return entry.run;
  for (const Entry& entry : kOrders)
    if (entry.name == name) return entry.run;
  return nullptr;
}

}  // namespace vitrine::jinja
