#include <algorithm>

#include "base/utf8.h"
#include "grammar/numerals.h"
#include "grammar/schema.h"

namespace vitrine::grammar {
namespace {

// The conjunction of two automata, either of which may be missing (anything).
Result<DfaPtr> meet_dfas(const DfaPtr& a, const DfaPtr& b, Budget& budget) {
  if (!a || a == b) return b;
  if (!b) return a;
  VT_TRY(Dfa both, intersect(*a, *b, budget));
  return std::make_shared<const Dfa>(std::move(both));
}

void meet_arrays(Shape::Array& a, const Shape::Array& b) {
  std::vector<Need> first(std::max(a.first.size(), b.first.size()));
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = both(a.at(i), b.at(i));
  a.rest = both(a.rest, b.rest);
  a.first = std::move(first);
  a.min = std::max(a.min, b.min);
  a.max = std::min(a.max, b.max);
}

bool is_never(const Need& need) {
  return !need.empty() && need.front().kind == Demand::Kind::kNever;
}

// Contradictions that show in the bounds alone.
void drop_impossible(Shape& s) {
  if (s.number && s.number->empty()) s.types &= ~Shape::kNumber;
  if ((s.text && s.text->empty()) || s.min_length > s.max_length) s.types &= ~Shape::kString;
  for (std::size_t i = 0; i < s.array.first.size(); ++i)
    if (is_never(s.array.first[i])) s.array.max = std::min<std::uint64_t>(s.array.max, i);
  if (is_never(s.array.rest))
    s.array.max = std::min<std::uint64_t>(s.array.max, s.array.first.size());
  if (s.array.min > s.array.max) s.types &= ~Shape::kArray;
  if (s.object.min > s.object.max || s.object.required.size() > s.object.max)
    s.types &= ~Shape::kObject;
}

}  // namespace

Need both(const Need& a, const Need& b) {
  Need out;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

Need Shape::Object::of(const std::string& name) const {
  Need need;
  for (const auto& group : groups) {
    bool found = false;
    for (const auto& [key, wanted] : group->named)
      if (key == name) need = both(need, wanted), found = true;
    for (const auto& pattern : group->patterns)
      if (pattern.dfa->accepts(name)) need = both(need, pattern.need), found = true;
    if (!found) need = both(need, group->other);
  }
  return need;
}

Error SchemaReader::refuse(std::string_view keyword, std::string_view why) const {
  return make_error(ErrorCode::kUnsupported, "{}: \"{}\" {}", what_, shortened(keyword), why);
}

// False: nothing is left.
Result<bool> SchemaReader::meet(Shape& a, const Shape& b) {
  a.types &= b.types;
  if (a.types == 0) return false;
  if (a.types & Shape::kNumber) {
    VT_TRY(a.number, meet_dfas(a.number, b.number, budget_));
  }
  if (a.types & Shape::kString) {
    VT_TRY(a.text, meet_dfas(a.text, b.text, budget_));
    a.min_length = std::max(a.min_length, b.min_length);
    a.max_length = std::min(a.max_length, b.max_length);
  }
  if (a.types & Shape::kArray) meet_arrays(a.array, b.array);
  if (a.types & Shape::kObject) {
    Shape::Object& x = a.object;
    const Shape::Object& y = b.object;
    x.groups.insert(x.groups.end(), y.groups.begin(), y.groups.end());
    for (const std::string& name : y.required)
      if (std::find(x.required.begin(), x.required.end(), name) == x.required.end())
        x.required.push_back(name);
    VT_TRY(x.names, meet_dfas(x.names, y.names, budget_));
    x.min = std::max(x.min, y.min);
    x.max = std::min(x.max, y.max);
  }
  drop_impossible(a);
  return a.types != 0;
}

Result<Shapes> SchemaReader::meet(const Shapes& a, const Shapes& b) {
  Shapes out;
  for (const Shape& x : a) {
    for (const Shape& y : b) {
      if (!budget_.spend(64 + 8 * (x.object.groups.size() + y.object.groups.size())))
        return budget_.exhausted();
      Shape z = x;
      VT_TRY(bool left, meet(z, y));
      if (left) out.push_back(std::move(z));
      if (out.size() > kMaxShapes)
        return refuse("anyOf", fmt::format("and the like give more than {} alternatives at once",
                                           kMaxShapes));
    }
  }
  return out;
}

Need SchemaReader::canonical(Need need) {
  for (Demand& demand : need) {
    if (demand.value == nullptr || demand.value == &root_) continue;
    auto [it, added] = canonical_.try_emplace(demand.value, demand.value);
    if (added) {
      std::string text = json::serialize(*demand.value);
      budget_.spend(text.size() / 8);
      it->second = first_of_.try_emplace(std::move(text), demand.value).first->second;
    }
    demand.value = it->second;
  }
  std::sort(need.begin(), need.end());
  need.erase(std::unique(need.begin(), need.end()), need.end());
  return need;
}

Result<const Shapes*> SchemaReader::shapes(const Need& wanted) {
  const Need need = canonical(wanted);
  if (auto it = kept_.find(need); it != kept_.end()) return it->second.get();
  if (kept_.size() >= kMaxNeeds) return budget_.exhausted();
  Shapes all{Shape{}};
  for (const Demand& demand : need) {
    VT_TRY(Shapes one, expand(demand));
    VT_TRY(all, meet(all, one));
  }
  return (kept_[need] = std::make_unique<Shapes>(std::move(all))).get();
}

Result<bool> SchemaReader::surely_empty(const Shapes& all, int depth) {
  for (const Shape& s : all) {
    if (s.types & ~Shape::kObject & Shape::kAll) return false;
    if (depth == 0) return false;
    bool impossible = false;
    for (const std::string& name : s.object.required) {
      const Need need = s.object.of(name);
      if (need.empty()) continue;
      VT_TRY(const Shapes* inner, shapes(need));
      VT_TRY(bool empty, surely_empty(*inner, depth - 1));
      impossible = impossible || empty;
    }
    if (!impossible) return false;
  }
  return true;
}

}  // namespace vitrine::grammar
