#include "grammar/schema_plan.h"

#include <algorithm>
#include <set>

#include "grammar/json_text.h"
#include "grammar/machine.h"
#include "grammar/numerals.h"
#include "grammar/schema_keywords.h"

namespace vitrine::grammar {
namespace {

constexpr std::size_t kMaxPatterns = 12;
constexpr std::uint32_t kOtherKey = 1 << 13;  // above every named key
static_assert(kMaxProperties < kOtherKey);

}  // namespace

Result<NodeId> SchemaPlanner::run() {
  const NodeId root = node_of(need_of(schema_));
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_.size() > kMaxNeeds) return budget_.exhausted();
    VT_RETURN_IF_ERROR(plan(nodes_[i]));
  }
  if (!mark_productive()) return budget_.exhausted();
  if (!nodes_[root].productive)
    return make_error(ErrorCode::kInvalid, "{}: no value satisfies the schema", what_);
  return root;
}

NodeId SchemaPlanner::node_of(const Need& wanted) {
  const Need need = reader_.canonical(wanted);
  auto [it, added] = ids_.try_emplace(need, nodes_.size());
  if (added) nodes_.push_back({.need = need});
  return it->second;
}

Status SchemaPlanner::plan(Node& n) {
  VT_TRY(const Shapes* shapes, reader_.shapes(n.need));
  for (const Shape& shape : *shapes) {
    Plan p{.shape = &shape, .types = shape.types};
    if (p.types & Shape::kNumber) VT_RETURN_IF_ERROR(plan_number(p));
    if (p.types & Shape::kString) VT_RETURN_IF_ERROR(plan_text(p));
    if (p.types & Shape::kArray) plan_items(p);
    if (p.types & Shape::kObject) VT_RETURN_IF_ERROR(plan_keys(p));
    n.plans.push_back(std::move(p));
  }
  return Ok{};
}

// Within the digits that are written; whole numbers without a point where spelling is ours.
Status SchemaPlanner::plan_number(Plan& p) {
  const DfaPtr& number = p.shape->number;
  if (!number) return Ok{};
  auto [it, added] = numbers_.try_emplace(number);
  if (added) {
    VT_TRY(Dfa bounded, bounded_numerals(budget_));
    VT_TRY(Dfa written, intersect(*number, bounded, budget_));
    VT_TRY(Dfa whole, whole_numerals(budget_));
    VT_TRY(Dfa broken, subtract(written, whole, budget_));
    if (broken.empty() && !options_.any_order) {
      VT_TRY(Dfa plain, plain_whole(budget_));
      VT_TRY(written, intersect(written, plain, budget_));
    }
    it->second = std::make_shared<const Dfa>(std::move(written));
  }
  p.number = it->second;
  if (p.number->empty()) p.types &= static_cast<std::uint8_t>(~Shape::kNumber);
  return Ok{};
}

Status SchemaPlanner::plan_text(Plan& p) {
  const Shape& s = *p.shape;
  p.text = s.text;
  if (!p.text || (s.min_length == 0 && s.max_length == kUnbounded)) return Ok{};
  VT_TRY(Dfa length, text_of_length(s.min_length, s.max_length, budget_));
  VT_TRY(Dfa both, intersect(*s.text, length, budget_));
  p.text = std::make_shared<const Dfa>(std::move(both));
  if (p.text->empty()) p.types &= static_cast<std::uint8_t>(~Shape::kString);
  return Ok{};
}

void SchemaPlanner::plan_items(Plan& p) {
  const Shape::Array& a = p.shape->array;
  for (std::size_t i = 0; i < a.first.size() && i < a.max; ++i)
    p.first.push_back(node_of(a.first[i]));
  p.rest = node_of(a.max > a.first.size() ? a.rest : kNever);
}

Status SchemaPlanner::plan_keys(Plan& p) {
  const Shape::Object& o = p.shape->object;
  std::vector<std::string> names;
  std::set<std::string> known;
  std::vector<const Shape::Group::Pattern*> patterns;
  Need other;
  auto add = [&](const std::string& name) {
    if (known.insert(name).second) names.push_back(name);
  };
  for (const auto& group : o.groups) {
    for (const auto& [name, need] : group->named) add(name);
    for (const auto& pattern : group->patterns) patterns.push_back(&pattern);
    other = both(other, group->other);
  }
  for (const std::string& name : o.required) add(name);
  if (names.size() > kMaxProperties) return budget_.exhausted();
  if (patterns.size() > kMaxPatterns)
    return reader_.refuse("patternProperties", fmt::format("has more than {} patterns for one "
                                                           "object",
                                                           kMaxPatterns));
  VT_TRY(Dfa keys, texts(names, budget_));
  if (other != kNever || !patterns.empty()) {
    VT_TRY(Dfa any, any_text(budget_));
    VT_TRY(keys, product(
                     keys, any, [](auto a, auto b) { return a   ? a
                                                            : b ? kOtherKey
                                                                : 0; }, budget_));
  }
  for (const auto* pattern : patterns) {
    VT_TRY(keys, product(
                     keys, *pattern->dfa,
                     [](auto a, auto b) { return a ? a << 1 | (b ? 1 : 0) : 0; }, budget_));
  }
  if (o.names) {
    VT_TRY(keys, product(
                     keys, *o.names, [](auto a, auto b) { return b ? a : 0; }, budget_));
  }
  p.keys.any_free = names.empty() && patterns.empty() && !o.names;
  p.keys.dfa = std::move(keys);
  number_labels(p, names, patterns.size());
  if (!options_.any_order || p.keys.named <= kMaxUnorderedKeys) return Ok{};
  return reader_.refuse("properties", fmt::format("has {} names, in any order allowed are {}",
                                                  p.keys.named, kMaxUnorderedKeys));
}

// The automaton's labels tell name and matching patterns; here they become numbers in order.
void SchemaPlanner::number_labels(Plan& p, const std::vector<std::string>& names,
                                  std::size_t patterns) {
  const Shape::Object& o = p.shape->object;
  std::map<std::uint32_t, std::uint32_t> renamed;  // labels of the automaton
  for (std::uint32_t label : p.keys.dfa.label)
    if (label != 0) renamed[label] = 0;
  std::set<std::string> required(o.required.begin(), o.required.end());
  std::size_t found = 0;
  for (auto& [label, number] : renamed) {
    const std::uint32_t key = label >> patterns;
    if (key == kOtherKey) continue;
    const std::string& name = names[key - 1];
    const Need need = o.of(name);
    if (need == kNever || (!need.empty() && need[0].kind == Demand::Kind::kNever)) continue;
    p.keys.labels.push_back({node_of(need), required.contains(name)});
    found += required.contains(name) ? 1 : 0;
    number = static_cast<std::uint32_t>(p.keys.labels.size());
  }
  p.keys.named = static_cast<std::uint32_t>(p.keys.labels.size());
  p.keys.impossible = found < required.size();
  for (auto& [label, number] : renamed) {
    if (label >> patterns != kOtherKey) continue;
    Need need;
    std::size_t bit = patterns;
    for (const auto& group : o.groups) {
      bool matched = false;
      for (const auto& pattern : group->patterns)
        if (label >> --bit & 1) need = both(need, pattern.need), matched = true;
      if (!matched) need = both(need, group->other);
    }
    if (!need.empty() && need[0].kind == Demand::Kind::kNever) continue;
    p.keys.labels.push_back({node_of(need), false});
    number = static_cast<std::uint32_t>(p.keys.labels.size());
  }
  for (std::uint32_t& label : p.keys.dfa.label)
    if (label != 0) label = renamed[label];
  p.keys.dfa.trim();
}

bool SchemaPlanner::mark_productive() {
  for (bool changed = true; changed;) {
    changed = false;
    for (Node& n : nodes_) {
      if (n.productive) continue;
      if (!budget_.spend(8 * n.plans.size() + 1)) return false;
      n.productive =
          std::any_of(n.plans.begin(), n.plans.end(), [&](const Plan& p) { return can_be(p); });
      changed = changed || n.productive;
    }
  }
  return true;
}

bool SchemaPlanner::can_be(const Plan& p) const {
  constexpr std::uint8_t kScalars = Shape::kAll & ~(Shape::kArray | Shape::kObject);
  return (p.types & kScalars) || can_be_array(p) || can_be_object(p);
}

bool SchemaPlanner::can_be_array(const Plan& p) const {
  return (p.types & Shape::kArray) && p.shape->array.min <= most_items(p);
}
std::uint64_t SchemaPlanner::most_items(const Plan& p) const {
  for (std::size_t i = 0; i < p.first.size(); ++i)
    if (!nodes_[p.first[i]].productive) return i;
  return nodes_[p.rest].productive ? p.shape->array.max : p.first.size();
}

bool SchemaPlanner::can_be_object(const Plan& p) const {
  if (!(p.types & Shape::kObject) || p.keys.impossible) return false;
  std::uint64_t possible = 0;
  for (std::size_t i = 0; i < p.keys.labels.size(); ++i) {
    const Keys::Label& label = p.keys.labels[i];
    const bool free = i >= p.keys.named;
    if (nodes_[label.value].productive)
      possible += free ? kMaxProperties + p.shape->object.min : 1;
    else if (label.required)
      return false;
  }
  return possible >= p.shape->object.min;
}

}  // namespace vitrine::grammar
