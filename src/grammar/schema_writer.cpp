// From shapes to rules: what a schema admits, as text.
//
// First all needs that can come up are found, with the automaton of each object's keys; then those
// that no finite value meets are marked (a member that requires itself); then each of the others
// becomes a rule.
#include <algorithm>
#include <deque>

#include "grammar/compile.h"
#include "grammar/json_text.h"
#include "grammar/numerals.h"
#include "grammar/schema.h"
#include "grammar/schema_keywords.h"

namespace vitrine::grammar {
namespace {

using NodeId = std::uint32_t;

// Keys that an object tells apart: named ones first, each once; then kinds of free ones.
struct Keys {
  struct Label {
    NodeId value;
    bool required;
  };
  Dfa dfa;  // contents of keys; label i has number i + 1
  std::vector<Label> labels;
  std::uint32_t named = 0;
  bool any_free = false;    // the free ones are all others, of one kind
  bool impossible = false;  // something that is required cannot be
};

// How the values of one shape are written.
struct Plan {
  const Shape* shape;
  std::uint8_t types;
  // Null: any (for strings, of the shape's length).
  DfaPtr number = {}, text = {};
  std::vector<NodeId> first = {};
  NodeId rest = 0;
  Keys keys = {};
};

struct Node {
  Need need;
  std::vector<Plan> plans = {};
  bool productive = false;
  std::uint32_t rule = 0;
};

constexpr std::size_t kMaxPatterns = 12;
constexpr std::uint32_t kOtherKey = 1 << 13;  // above every named key
static_assert(kMaxProperties < kOtherKey);

class SchemaWriter {
 public:
  SchemaWriter(Program& program, const json::value& schema, std::string_view what,
               SchemaOptions options, Budget& budget)
      : program_(program),
        schema_(schema),
        what_(what),
        options_(options),
        budget_(budget),
        reader_(schema, what, budget) {}

  Result<std::uint32_t> run() {
    const NodeId root = node(need_of(schema_));
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_.size() > kMaxNeeds) return budget_.exhausted();
      VT_RETURN_IF_ERROR(plan(nodes_[i]));
    }
    if (!mark_productive()) return budget_.exhausted();
    if (!nodes_[root].productive)
      return make_error(ErrorCode::kInvalid, "{}: no value satisfies the schema", what_);
    for (Node& n : nodes_)
      if (n.productive) n.rule = program_.add_rule("value");
    for (const Node& n : nodes_)
      if (n.productive) VT_RETURN_IF_ERROR(write(n));
    return nodes_[root].rule;
  }

 private:
  NodeId node(const Need& wanted) {
    const Need need = reader_.canonical(wanted);
    auto [it, added] = ids_.try_emplace(need, nodes_.size());
    if (added) nodes_.push_back({.need = need});
    return it->second;
  }

  // ---- plans

  Status plan(Node& n) {
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
  Status plan_number(Plan& p) {
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

  Status plan_text(Plan& p) {
    const Shape& s = *p.shape;
    p.text = s.text;
    if (!p.text || (s.min_length == 0 && s.max_length == kUnbounded)) return Ok{};
    VT_TRY(Dfa length, text_of_length(s.min_length, s.max_length, budget_));
    VT_TRY(Dfa both, intersect(*s.text, length, budget_));
    p.text = std::make_shared<const Dfa>(std::move(both));
    if (p.text->empty()) p.types &= static_cast<std::uint8_t>(~Shape::kString);
    return Ok{};
  }

  void plan_items(Plan& p) {
    const Shape::Array& a = p.shape->array;
    for (std::size_t i = 0; i < a.first.size() && i < a.max; ++i)
      p.first.push_back(node(a.first[i]));
    p.rest = node(a.max > a.first.size() ? a.rest : kNever);
  }

  Status plan_keys(Plan& p) {
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
      VT_TRY(keys,
             product(
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
  void number_labels(Plan& p, const std::vector<std::string>& names, std::size_t patterns) {
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
      p.keys.labels.push_back({node(need), required.contains(name)});
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
      p.keys.labels.push_back({node(need), false});
      number = static_cast<std::uint32_t>(p.keys.labels.size());
    }
    for (std::uint32_t& label : p.keys.dfa.label)
      if (label != 0) label = renamed[label];
    p.keys.dfa.trim();
  }

  // ---- which needs can be met

  bool mark_productive() {
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

  bool can_be(const Plan& p) const {
    constexpr std::uint8_t kScalars = Shape::kAll & ~(Shape::kArray | Shape::kObject);
    return (p.types & kScalars) || can_be_array(p) || can_be_object(p);
  }

  bool can_be_array(const Plan& p) const {
    return (p.types & Shape::kArray) && p.shape->array.min <= most_items(p);
  }
  // Items that can be there, up to the first that cannot.
  std::uint64_t most_items(const Plan& p) const {
    for (std::size_t i = 0; i < p.first.size(); ++i)
      if (!nodes_[p.first[i]].productive) return i;
    return nodes_[p.rest].productive ? p.shape->array.max : p.first.size();
  }

  bool can_be_object(const Plan& p) const {
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

  // ---- rules

  Status write(const Node& n) {
    Program::Rule& rule = program_.rules[n.rule];
    Nfa& nfa = rule.nfa;
    for (const Plan& p : n.plans) {
      for (auto [type, text] :
           {std::pair{Shape::kNull, "null"}, {Shape::kFalse, "false"}, {Shape::kTrue, "true"}})
        if (p.types & type) nfa.text(rule.start, rule.final, text);
      if (p.types & Shape::kNumber) {
        if (p.number)
          nfa.copy(rule.start, rule.final, *p.number);
        else
          write_number(nfa, rule.start, rule.final);
      }
      if (p.types & Shape::kString) write_text(p, rule);
      if (can_be_array(p)) call(rule, write_array(p));
      if (can_be_object(p)) {
        VT_TRY(std::uint32_t made, write_object(p));
        call(rule, made);
      }
    }
    return Ok{};
  }

  void call(Program::Rule& rule, std::uint32_t callee) {
    rule.nfa.letter(rule.start, rule.final, program_.letter(Op::kCall, callee));
  }

  void write_text(const Plan& p, Program::Rule& rule) {
    if (p.text) {
      write_string_of(rule.nfa, rule.start, *p.text,
                      [&](std::uint32_t, StateId end) { rule.nfa.epsilon(end, rule.final); });
    } else if (p.shape->min_length == 0 && p.shape->max_length == kUnbounded) {
      write_string(rule.nfa, rule.start, rule.final);
    } else {
      call(rule, counted_string(p.shape->min_length, p.shape->max_length));
    }
  }

  // A rule of its own, so that loops with different counters are never one state.
  std::uint32_t counted_string(std::uint64_t min, std::uint64_t max) {
    const std::uint32_t counter = program_.counter(min, max);
    auto [it, added] = strings_.try_emplace(counter, 0);
    if (!added) return it->second;
    it->second = program_.add_rule("string");
    Program::Rule& rule = program_.rules[it->second];
    StateId loop = rule.nfa.add();
    rule.nfa.text(rule.start, loop, "\"");
    rule.nfa.letter(loop, rule.final, program_.letter(Op::kCounted, counter));
    write_string_char(rule.nfa, loop, loop);
    rule.nfa.text(loop, rule.final, "\"");
    return it->second;
  }

  void write_value(Nfa& nfa, StateId from, StateId to, NodeId value) {
    nfa.letter(from, to, program_.letter(Op::kCall, nodes_[value].rule));
  }

  std::uint32_t write_array(const Plan& p) {
    const std::uint32_t number = program_.add_rule("array", true);
    Program::Rule& rule = program_.rules[number];
    Nfa& nfa = rule.nfa;
    const std::uint64_t min = p.shape->array.min, max = std::min(p.shape->array.max, most_items(p));
    StateId close = nfa.add(), at = nfa.add();
    nfa.text(close, rule.final, "]");
    StateId open = nfa.add();
    nfa.text(rule.start, open, "[");
    write_blank(nfa, open, at);
    if (min == 0) nfa.epsilon(at, close);
    StateId blank_close = nfa.add();
    write_blank(nfa, blank_close, close);
    // Items with a place of their own; the first of the rest among them, if there are no others.
    const std::uint64_t places =
        std::min<std::uint64_t>(max, std::max<std::size_t>(p.first.size(), 1));
    for (std::uint64_t i = 0; i < places; ++i) {
      StateId done = nfa.add();
      write_value(nfa, at, done, i < p.first.size() ? p.first[i] : p.rest);
      if (i + 1 >= min) nfa.epsilon(done, blank_close);
      at = done;
      if (i + 1 == places) break;
      StateId comma = nfa.add(), next = nfa.add();
      nfa.text(at, comma, ",");
      write_blank(nfa, comma, next);
      at = next;
    }
    if (max > places)
      write_rest(p, nfa, at, blank_close, min > places ? min - places : 0,
                 max == kUnbounded ? kUnbounded : max - places);
    return number;
  }

  void write_rest(const Plan& p, Nfa& nfa, StateId from, StateId to, std::uint64_t min,
                  std::uint64_t max) {
    StateId loop = nfa.add(), more = nfa.add(), comma = nfa.add(), item = nfa.add();
    nfa.text(more, comma, ",");
    write_blank(nfa, comma, item);
    write_value(nfa, item, loop, p.rest);
    if (min == 0 && max == kUnbounded) {
      nfa.epsilon(from, loop);
      nfa.epsilon(loop, more);
      nfa.epsilon(loop, to);
      return;
    }
    nfa.letter(from, loop, program_.letter(Op::kBeginCount, program_.counter(min, max)));
    nfa.letter(loop, more, program_.letter(Op::kAgain));
    nfa.letter(loop, to, program_.letter(Op::kEndCount));
  }

  // Labels whose values cannot be are left out of the automaton of keys.
  Keys possible_keys(const Keys& all) const {
    Keys out;
    std::vector<std::uint32_t> renamed(all.labels.size() + 1, 0);
    for (std::uint32_t i = 0; i < all.labels.size(); ++i) {
      if (!nodes_[all.labels[i].value].productive) continue;
      out.labels.push_back(all.labels[i]);
      if (i < all.named) ++out.named;
      renamed[i + 1] = static_cast<std::uint32_t>(out.labels.size());
    }
    out.any_free = all.any_free;
    out.dfa = all.dfa;
    for (std::uint32_t& label : out.dfa.label) label = renamed[label];
    out.dfa.trim();
    return out;
  }

  Result<std::uint32_t> write_object(const Plan& p) {
    const Shape::Object& o = p.shape->object;
    const Keys keys = possible_keys(p.keys);
    const bool has_free = keys.labels.size() > keys.named;
    ObjectSpec spec{.ordered = !options_.any_order,
                    .named = keys.named,
                    .labels = static_cast<std::uint32_t>(keys.labels.size())};
    spec.min = o.min, spec.max = o.max;
    for (std::uint32_t i = 0; i < keys.named; ++i) spec.required.push_back(keys.labels[i].required);
    if (has_free && o.min > 1 && o.min > o.required.size() + 1)
      return reader_.refuse("minProperties",
                            "cannot be enforced where keys may be repeated: more "
                            "than one member that is not named would be needed");
    const bool plain = keys.named == 0 && o.min == 0 && o.max == kUnbounded;
    const std::uint32_t number = program_.add_rule("object", true);
    Program::Rule& rule = program_.rules[number];
    Nfa& nfa = rule.nfa;
    StateId begin = nfa.add(), opened = nfa.add(), inside = nfa.add(), key = nfa.add(),
            after = nfa.add(), comma = nfa.add(), comma_done = nfa.add(), close = nfa.add(),
            blank_close = nfa.add();
    auto link = [&](StateId from, StateId to, Op op, std::uint32_t arg = 0) {
      if (plain)
        nfa.epsilon(from, to);
      else
        nfa.letter(from, to, program_.letter(op, arg));
    };
    link(rule.start, begin, Op::kBeginObject, static_cast<std::uint32_t>(program_.objects.size()));
    program_.objects.push_back(std::move(spec));
    nfa.text(begin, opened, "{");
    write_blank(nfa, opened, inside);
    link(inside, key, Op::kOpenKey);
    link(inside, close, Op::kEndObject);
    link(after, comma, Op::kOpenKey);
    link(after, blank_close, Op::kEndObject);
    nfa.text(comma, comma_done, ",");
    write_blank(nfa, comma_done, key);
    write_blank(nfa, blank_close, close);
    nfa.text(close, rule.final, "}");
    write_keys(keys, nfa, key, after, plain);
    return number;
  }

  void write_keys(const Keys& keys, Nfa& nfa, StateId from, StateId after, bool plain) {
    auto member = [&](std::uint32_t label, StateId quoted) {
      StateId named = nfa.add(), colon = nfa.add(), value = nfa.add();
      if (plain)
        nfa.epsilon(quoted, named);
      else
        nfa.letter(quoted, named, program_.letter(Op::kKey, label - 1));
      nfa.text(named, colon, ":");
      nfa.epsilon(colon, value);
      nfa.text(colon, value, " ");
      write_value(nfa, value, after, keys.labels[label - 1].value);
    };
    if (plain && keys.any_free && !keys.labels.empty()) {
      StateId quoted = nfa.add();
      write_string(nfa, from, quoted);
      member(1, quoted);
    } else {
      write_string_of(nfa, from, keys.dfa, member);
    }
  }

  Program& program_;
  const json::value& schema_;
  std::string_view what_;
  SchemaOptions options_;
  Budget& budget_;
  SchemaReader reader_;
  std::deque<Node> nodes_;
  std::map<Need, NodeId> ids_;
  std::map<DfaPtr, DfaPtr> numbers_;                // as written
  std::map<std::uint32_t, std::uint32_t> strings_;  // rules of counted strings
};

}  // namespace

Result<std::uint32_t> add_schema(Program& program, const json::value& schema, std::string_view what,
                                 SchemaOptions options, Budget& budget) {
  return SchemaWriter(program, schema, what, options, budget).run();
}

}  // namespace vitrine::grammar
