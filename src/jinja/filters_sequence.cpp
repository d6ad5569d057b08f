#include <algorithm>

#include "jinja/chars.h"
#include "jinja/filters.h"
#include "jinja/operators.h"

namespace vitrine::jinja {
namespace {

Value length(Interpreter&, const Value& value, Params& params) {
  params.done();
  if (const Text* text = value.if_string()) return count_chars(text->view());
  if (const Dict* dict = value.if_dict()) return dict->size();
  if (const Sequence* s = value.if_sequence(); s && s->kind != Sequence::Kind::kGenerator)
    return s->items.size();
  if (value.is_undefined()) return 0;
  fail("object of type '{}' has no length", value.type_name());
}

Value list(Interpreter& run, const Value& value, Params& params) {
  params.done();
  return make_list(run.iterate(value));
}

Value first(Interpreter& run, const Value& value, Params& params) {
  params.done();
  if (Sequence* s = value.if_sequence(); s && s->kind == Sequence::Kind::kGenerator)
    return s->next < s->items.size() ? s->items[s->next++]
                                     : Value::undefined("No first item, sequence was empty.");
  std::vector<Value> items = run.iterate(value);
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

Value last(Interpreter& run, const Value& value, Params& params) {
  params.done();
  const Sequence* s = value.if_sequence();
  if (s != nullptr && s->kind == Sequence::Kind::kGenerator)
    fail("'{}' object is not reversible", value.type_name());
  std::vector<Value> items = run.iterate(need(value));
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value join(Interpreter& run, const Value& value, Params& params) {
  Text separator = to_text(params.optional("d", ""));
  Value attribute = params.optional("attribute", None{});
  params.done();
  Text out;
  bool any = false;
  for (const Value& item : run.iterate(value)) {
    Value part = look_up(run, item, attribute);
    if (std::exchange(any, true)) out.append(separator);
    append_text(out, part);
  }
  return out;
}

Value reverse(Interpreter& run, const Value& value, Params& params) {
  params.done();
  if (const Text* text = value.if_string()) {
    CharIndex index(text->view());
    Text out;
    for (std::size_t i = index.count(); i-- > 0;) out.append(*text, index.at(i), index.at(i + 1));
    return out;
  }
  std::vector<Value> items = run.iterate(need(value));
  std::reverse(items.begin(), items.end());
  return make_generator(std::move(items), "list_reverseiterator");
}

Value items(Interpreter&, const Value& value, Params& params) {
  params.done();
  std::vector<Value> out;
  if (const Dict* dict = value.if_dict()) {
    for (const auto& [key, item] : dict->items())
      out.push_back(make_list({key, item}, Sequence::Kind::kTuple));
  } else if (!value.is_undefined()) {
    fail("Can only get item pairs from a mapping.");
  }
  return make_generator(std::move(out));
}

// By keys made once for each item.
template <typename Key>
std::vector<Value> sorted(const std::vector<Value>& values, bool reversed, Key key) {
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& value : values) keyed.emplace_back(key(value), value);
  // A reversed sort keeps the order of equal items too.
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reversed ? compare(b.first, a.first) < 0 : compare(a.first, b.first) < 0;
  });
  std::vector<Value> out;
  for (auto& [k, value] : keyed) out.push_back(std::move(value));
  return out;
}

Value dictsort(Interpreter&, const Value& value, Params& params) {
  bool case_sensitive = params.boolean("case_sensitive", false);
  Value by = params.optional("by", "key");
  bool reversed = params.boolean("reverse", false);
  params.done();
  bool by_key = equal(by, "key");
  if (!by_key && !equal(by, "value")) fail("You can only sort by either \"key\" or \"value\"");
  const Dict* dict = need(value).if_dict();
  if (dict == nullptr) fail("'{}' object has no attribute 'items'", value.type_name());
  std::vector<Value> pairs;
  for (const auto& [key, item] : dict->items())
    pairs.push_back(make_list({key, item}, Sequence::Kind::kTuple));
  return make_list(sorted(pairs, reversed, [&](const Value& pair) {
    const Value& key = pair.if_sequence()->items[by_key ? 0 : 1];
    return case_sensitive ? key : ignore_case(key);
  }));
}

Value sort(Interpreter& run, const Value& value, Params& params) {
  bool reversed = params.boolean("reverse", false);
  bool case_sensitive = params.boolean("case_sensitive", false);
  Value attribute = params.optional("attribute", None{});
  params.done();
  std::vector<Value> attributes;
  if (const Text* text = attribute.if_string()) {
    for (std::string_view rest = text->view();;) {
      std::size_t comma = rest.find(',');
      attributes.emplace_back(Text(std::string(rest.substr(0, comma))));
      if (comma == rest.npos) break;
      rest.remove_prefix(comma + 1);
    }
  } else {
    attributes.push_back(attribute);
  }
  return make_list(sorted(run.iterate(need(value)), reversed, [&](const Value& item) {
    std::vector<Value> keys;
    for (const Value& name : attributes) {
      Value key = look_up(run, item, name);
      keys.push_back(case_sensitive ? key : ignore_case(key));
    }
    return make_list(std::move(keys));
  }));
}

Value unique(Interpreter& run, const Value& value, Params& params) {
  bool case_sensitive = params.boolean("case_sensitive", false);
  Value attribute = params.optional("attribute", None{});
  params.done();
  Dict seen;
  std::vector<Value> out;
  for (const Value& item : run.iterate(value)) {
    Value key = look_up(run, item, attribute);
    if (!case_sensitive) key = ignore_case(key);
    if (!Dict::hashable(key)) fail("unhashable type: '{}'", key.type_name());
    if (seen.find(key) != nullptr) continue;
    seen.set(key, None{});
    out.push_back(item);
  }
  return make_generator(std::move(out));
}

Value extreme(Interpreter& run, const Value& value, Params& params, int sign) {
  bool case_sensitive = params.boolean("case_sensitive", false);
  Value attribute = params.optional("attribute", None{});
  params.done();
  std::optional<Value> best, best_key;
  for (const Value& item : run.iterate(value)) {
    Value key = look_up(run, item, attribute);
    if (!case_sensitive) key = ignore_case(key);
    if (best && compare(key, *best_key) * sign <= 0) continue;
    best = item;
    best_key = key;
  }
  return best ? *best : Value::undefined("No aggregated item, sequence was empty.");
}

Value min(Interpreter& run, const Value& v, Params& params) { return extreme(run, v, params, -1); }
Value max(Interpreter& run, const Value& v, Params& params) { return extreme(run, v, params, 1); }

Value batch(Interpreter& run, const Value& value, Params& params) {
  Int size = params.integer("linecount", 0);
  Value fill = params.optional("fill_with", None{});
  params.done();
  std::vector<Value> out, row;
  for (Value& item : run.iterate(value)) {
    if (static_cast<Int>(row.size()) == size) out.push_back(make_list(std::exchange(row, {})));
    row.push_back(std::move(item));
  }
  if (!row.empty()) {
    while (!fill.is_none() && static_cast<Int>(row.size()) < size) {
      charge_bytes(sizeof(Value));
      row.push_back(fill);
    }
    out.push_back(make_list(std::move(row)));
  }
  return make_generator(std::move(out));
}

Value slice(Interpreter& run, const Value& value, Params& params) {
  Int count = params.integer("slices", 0);
  Value fill = params.optional("fill_with", None{});
  params.done();
  if (count <= 0) fail("slice(): slices: found {}, allowed at least 1", count);
  std::vector<Value> all = run.iterate(value), out;
  auto size = static_cast<Int>(all.size());
  Int each = size / count, extra = size % count, offset = 0;
  for (Int i = 0; i < count; ++i) {
    Int begin = offset + i * each;
    if (i < extra) ++offset;
    Int end = offset + (i + 1) * each;
    std::vector<Value> part(all.begin() + static_cast<std::ptrdiff_t>(begin),
                            all.begin() + static_cast<std::ptrdiff_t>(end));
    if (!fill.is_none() && i >= extra) part.push_back(fill);
    out.push_back(make_list(std::move(part)));
  }
  return make_generator(std::move(out));
}

Value groupby(Interpreter& run, const Value& value, Params& params) {
  Value attribute = params.required("attribute");
  Value otherwise = params.optional("default", None{});
  bool case_sensitive = params.boolean("case_sensitive", false);
  params.done();
  auto key_of = [&](const Value& item) {
    Value key = look_up(run, item, attribute, otherwise.is_none() ? nullptr : &otherwise);
    return case_sensitive ? key : ignore_case(key);
  };
  std::vector<std::pair<Value, std::vector<Value>>> groups;
  for (const Value& item : sorted(run.iterate(value), false, key_of)) {
    Value key = key_of(item);
    if (groups.empty() || !equal(groups.back().first, key)) groups.push_back({key, {}});
    groups.back().second.push_back(item);
  }
  std::vector<Value> out;
  for (auto& [key, list] : groups) {
    // In their first item's own case.
    Value shown = case_sensitive ? key : look_up(run, list[0], attribute, &key);
    Value group = make_list({shown, make_list(std::move(list))}, Sequence::Kind::kTuple);
    group.if_sequence()->group = true;
    out.push_back(group);
  }
  return make_list(std::move(out));
}

constexpr FilterEntry kFilters[] = {
    {"length", length},     {"count", length}, {"list", list},     {"first", first},
    {"last", last},         {"join", join},    {"items", items},   {"reverse", reverse},
    {"dictsort", dictsort}, {"sort", sort},    {"unique", unique}, {"min", min},
    {"max", max},           {"batch", batch},  {"slice", slice},   {"groupby", groupby},
};

}  // namespace

std::span<const FilterEntry> sequence_filters() { return kFilters; }

}  // namespace vitrine::jinja
