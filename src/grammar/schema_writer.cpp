// From plans to rules: what a schema admits, as text.
#include <algorithm>

#include "grammar/json_text.h"
#include "grammar/numerals.h"
#include "grammar/schema_plan.h"

namespace vitrine::grammar {
namespace {

class SchemaWriter {
 public:
  SchemaWriter(Program& program, const json::value& schema, std::string_view what,
               SchemaOptions options, Budget& budget)
      : program_(program), options_(options), planner_(schema, what, options, budget) {}

  Result<std::uint32_t> run() {
    VT_TRY(NodeId root, planner_.run());
    for (Node& n : planner_.nodes())
      if (n.productive) n.rule = program_.add_rule("value");
    for (const Node& n : planner_.nodes())
      if (n.productive) VT_RETURN_IF_ERROR(write(n));
    return planner_.node(root).rule;
  }

 private:
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
      if (planner_.can_be_array(p)) call(rule, write_array(p));
      if (planner_.can_be_object(p)) {
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

  // A separate rule, so that loops with different counters never share a state.
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
    nfa.letter(from, to, program_.letter(Op::kCall, planner_.node(value).rule));
  }

  std::uint32_t write_array(const Plan& p) {
    const std::uint32_t number = program_.add_rule("array", true);
    Program::Rule& rule = program_.rules[number];
    Nfa& nfa = rule.nfa;
    const std::uint64_t min = p.shape->array.min,
                        max = std::min(p.shape->array.max, planner_.most_items(p));
    StateId close = nfa.add(), at = nfa.add();
    nfa.text(close, rule.final, "]");
    StateId open = nfa.add();
    nfa.text(rule.start, open, "[");
    write_blank(nfa, open, at);
    if (min == 0) nfa.epsilon(at, close);
    StateId blank_close = nfa.add();
    write_blank(nfa, blank_close, close);
    // Items with their own schema; if there are none, the first of the others.
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

  // Keys whose values are impossible are left out of the automaton of keys.
  Keys possible_keys(const Keys& all) const {
    Keys out;
    std::vector<std::uint32_t> renamed(all.labels.size() + 1, 0);
    for (std::uint32_t i = 0; i < all.labels.size(); ++i) {
      if (!planner_.node(all.labels[i].value).productive) continue;
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
      return planner_.reader().refuse("minProperties",
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
  SchemaOptions options_;
  SchemaPlanner planner_;
  std::map<std::uint32_t, std::uint32_t> strings_;  // rules of counted strings
};

}  // namespace

Result<std::uint32_t> add_schema(Program& program, const json::value& schema, std::string_view what,
                                 SchemaOptions options, Budget& budget) {
  return SchemaWriter(program, schema, what, options, budget).run();
}

}  // namespace vitrine::grammar
