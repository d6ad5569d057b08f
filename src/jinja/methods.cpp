// Methods of dicts and lists, and where those of strings are found (methods_str.cpp).
#include "jinja/methods.h"

#include <algorithm>

namespace vitrine::jinja {
namespace {

Value pairs_view(const Dict& dict, const char* name) {
  std::vector<Value> out;
  for (const auto& [key, value] : dict.items())
    out.push_back(make_list({key, value}, Sequence::Kind::kTuple));
  return make_list(std::move(out), Sequence::Kind::kView, name);
}

Value dict_get(Interpreter&, const Value& self, Args args) {
  Params params("get", std::move(args));
  Value key = params.required("key");
  Value otherwise = params.optional("default", None{});
  params.done();
  if (!Dict::hashable(key)) fail("unhashable type: '{}'", key.type_name());
  const Value* value = self.if_dict()->find(key);
  return value != nullptr ? *value : otherwise;
}

Value dict_items(Interpreter&, const Value& self, Args args) {
  Params("items", std::move(args)).done();
  return pairs_view(*self.if_dict(), "dict_items");
}

Value dict_keys(Interpreter& run, const Value& self, Args args) {
  Params("keys", std::move(args)).done();
  return make_list(run.iterate(self), Sequence::Kind::kView, "dict_keys");
}

Value dict_values(Interpreter&, const Value& self, Args args) {
  Params("values", std::move(args)).done();
  std::vector<Value> out;
  for (const auto& [key, value] : self.if_dict()->items()) out.push_back(value);
  return make_list(std::move(out), Sequence::Kind::kView, "dict_values");
}

// Nothing can change a dict or a list, so a copy is the same one.
Value copy(Interpreter&, const Value& self, Args args) {
  Params("copy", std::move(args)).done();
  return self;
}

Value list_index(Interpreter&, const Value& self, Args args) {
  Params params("index", std::move(args));
  Value wanted = params.required("value");
  params.done();
  const std::vector<Value>& items = self.if_sequence()->items;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (equal(items[i], wanted)) return i;
  fail("{} is not in list", repr(wanted).view());
}

Value list_count(Interpreter&, const Value& self, Args args) {
  Params params("count", std::move(args));
  Value wanted = params.required("value");
  params.done();
  const std::vector<Value>& items = self.if_sequence()->items;
  return static_cast<std::size_t>(
      std::count_if(items.begin(), items.end(), [&](const Value& v) { return equal(v, wanted); }));
}

constexpr MethodEntry kDict[] = {
    {"get", dict_get},       {"items", dict_items}, {"keys", dict_keys},
    {"values", dict_values}, {"copy", copy},
};
constexpr MethodEntry kList[] = {{"index", list_index}, {"count", list_count}, {"copy", copy}};

Method find(std::span<const MethodEntry> entries, std::string_view name) {
  for (const MethodEntry& entry : entries)
    if (entry.name == name) return entry.run;
  return nullptr;
}

}  // namespace

Method find_method(const Value& self, std::string_view name) {
  if (self.is_string()) return find(string_methods(), name);
  if (self.if_dict() != nullptr) return find(kDict, name);
  const Sequence* s = self.if_sequence();
  if (s == nullptr || s->kind > Sequence::Kind::kTuple) return nullptr;
  if (s->kind == Sequence::Kind::kTuple && name == "copy") return nullptr;
  return find(kList, name);
}

bool is_mutator(const Value& self, std::string_view name) {
  constexpr std::string_view kOfDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  constexpr std::string_view kOfList[] = {"append", "reverse", "insert", "sort",
                                          "extend", "remove",  "pop",    "clear"};
  auto among = [&](auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  if (self.if_dict() != nullptr) return among(kOfDict);
  const Sequence* s = self.if_sequence();
  return s != nullptr && s->kind == Sequence::Kind::kList && among(kOfList);
}

}  // namespace vitrine::jinja
