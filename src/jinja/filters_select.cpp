// map, select, reject and similar filters, which apply other filters and tests to items.
#include "jinja/filters.h"

namespace vitrine::jinja {
namespace {

// The arguments that follow the name of a filter or test.
Args rest_of(Params& params) {
  Args out;
  while (const Value* value = params.next("")) out.positional.push_back(*value);
  return out;
}

std::string name_of(const Value& value) {
  if (!value.is_string())
    fail("found '{}', allowed the name of a filter or test", value.type_name());
  return value.if_string()->bytes();
}

// As in jinja2, an empty value or None has no items, whatever its type.
std::vector<Value> items_of(Interpreter& run, const Value& value) {
  return value.truthy() ? run.iterate(value) : std::vector<Value>{};
}

Value map(Interpreter& run, const Value& value, Params& params) {
  std::vector<Value> out;
  if (const Value* attribute = params.named("attribute")) {
    const Value* otherwise = params.named("default");
    params.done();
    for (const Value& item : items_of(run, value))
      out.push_back(look_up(run, item, *attribute, otherwise));
    return make_generator(std::move(out));
  }
  std::string name = name_of(params.required("filter"));
  Args args = rest_of(params);
  args.named = params.rest_named();
  for (const Value& item : items_of(run, value)) out.push_back(run.filter(name, item, args));
  return make_generator(std::move(out));
}

Value choose(Interpreter& run, const Value& value, Params& params, bool wanted, bool by_attribute) {
  Value attribute;
  if (by_attribute) attribute = params.required("attribute");
  const Value* test = params.next("");
  std::string name = test != nullptr ? name_of(*test) : "";
  Args args = rest_of(params);
  args.named = params.rest_named();
  std::vector<Value> out;
  for (const Value& item : items_of(run, value)) {
    Value seen = by_attribute ? look_up(run, item, attribute) : item;
    bool yes = test != nullptr ? run.test(name, seen, args) : seen.truthy();
    if (yes == wanted) out.push_back(item);
  }
  return make_generator(std::move(out));
}

Value select(Interpreter& run, const Value& v, Params& p) { return choose(run, v, p, true, false); }
Value reject(Interpreter& run, const Value& v, Params& p) {
  return choose(run, v, p, false, false);
}
Value selectattr(Interpreter& run, const Value& v, Params& p) {
  return choose(run, v, p, true, true);
}
Value rejectattr(Interpreter& run, const Value& v, Params& p) {
  return choose(run, v, p, false, true);
}

constexpr FilterEntry kFilters[] = {
    {"map", map},
    {"select", select},
    {"reject", reject},
    {"selectattr", selectattr},
    {"rejectattr", rejectattr},
};

}  // namespace

std::span<const FilterEntry> select_filters() { return kFilters; }

}  // namespace vitrine::jinja
