#include "grammar/compile.h"

#include "base/json.h"
#include "base/utf8.h"
#include "grammar/gbnf.h"
#include "grammar/regex.h"

namespace vitrine {
namespace grammar {
namespace {

using Kind = ConstraintSpec::Kind;

constexpr const char* kKindNames[] = {"response_format", "json_schema", "grammar",
                                      "regex",           "choice",      "tools"};

// GBNF: a rule of the grammar becomes a rule of the program. A small rule that is not recursive is
// inlined where it is used.
class GbnfWriter {
 public:
  GbnfWriter(const RuleSet& set, std::string_view what, Program& program, Budget& budget)
      : set_(set), what_(what), program_(program), budget_(budget) {}

  Status run() {
    for (const RuleSet::Rule& r : set_.rules) numbers_.push_back(program_.add_rule(r.name));
    measure();
    program_.root = numbers_[set_.root];
    for (std::uint32_t r = 0; r < set_.rules.size(); ++r) {
      // A rule that is inlined everywhere is not written.
      if (r != set_.root && in_place_[r]) continue;
      Program::Rule& rule = program_.rules[numbers_[r]];
      VT_RETURN_IF_ERROR(write(rule, set_.rules[r].expr, rule.start, rule.final));
    }
    return Ok{};
  }

 private:
  static constexpr std::uint64_t kSmall = 64;
  static constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;

  // Sizes of expressions with small rules inlined, and which expressions can be empty. A rule is
  // measured before those that use it; a recursive one is not measured.
  void measure() {
    in_place_.assign(set_.rules.size(), false);
    nullable_rule_.assign(set_.rules.size(), false);
    std::vector<std::uint64_t> size(set_.exprs.size());
    nullable_.assign(set_.exprs.size(), false);
    for (int round = 0; round < 16; ++round) {
      bool changed = false;
      for (ExprId id = 0; id < set_.exprs.size(); ++id) {
        size[id] = size_of(set_.exprs[id], size);
        nullable_[id] = is_nullable(set_.exprs[id]);
      }
      for (std::uint32_t r = 0; r < set_.rules.size(); ++r) {
        const ExprId e = set_.rules[r].expr;
        if (!in_place_[r] && size[e] <= kSmall) {
          in_place_[r] = changed = true;
          rule_size_.resize(set_.rules.size());
          rule_size_[r] = size[e];
        }
        if (!nullable_rule_[r] && nullable_[e]) nullable_rule_[r] = changed = true;
      }
      if (!changed) break;
    }
  }

  std::uint64_t size_of(const Expr& e, const std::vector<std::uint64_t>& size) const {
    if (e.kind == Expr::Kind::kRule) return in_place_[e.rule] ? rule_size_[e.rule] : kHuge;
    std::uint64_t sum = 1 + e.text.size() + e.set.ranges().size();
    for (ExprId part : e.parts) sum = std::min(kHuge, sum + size[part]);
    if (e.kind != Expr::Kind::kRepeat) return sum;
    const std::uint64_t times = e.max == kUnbounded ? e.min + 1 : e.max;
    return times > kHuge / sum ? kHuge : sum * times;
  }

  bool is_nullable(const Expr& e) const {
    using K = Expr::Kind;
    auto part = [&](ExprId id) { return nullable_[id]; };
    if (e.kind == K::kText) return e.text.empty();
    if (e.kind == K::kRule) return nullable_rule_[e.rule];
    if (e.kind == K::kSequence) return std::all_of(e.parts.begin(), e.parts.end(), part);
    if (e.kind == K::kChoice) return std::any_of(e.parts.begin(), e.parts.end(), part);
    if (e.kind == K::kRepeat) return e.min == 0 || nullable_[e.parts[0]];
    return false;
  }

  Status write(Program::Rule& rule, ExprId expr, StateId from, StateId to) {
    ExprWriter writer(set_.exprs, rule.nfa, budget_);
    writer.on_rule = [&](std::uint32_t r, StateId a, StateId b) -> Status {
      if (in_place_[r]) return write(rule, set_.rules[r].expr, a, b);
      rule.nfa.letter(a, b, program_.letter(Op::kCall, numbers_[r]));
      return Ok{};
    };
    writer.on_count = [&](const Expr& e, StateId a, StateId b) -> Status {
      if (nullable_[e.parts[0]])
        return make_error(ErrorCode::kUnsupported,
                          "{}: rule \"{}\" repeats something that can be empty up to {} times; "
                          "allowed for such are {}",
                          what_, shortened(rule.name), e.max, ExprWriter::kWriteOut);
      return count(rule, e, a, b);
    };
    return writer.write(expr, from, to);
  }

  // The first iteration is written separately, because the loop may end only after it.
  Status count(Program::Rule& rule, const Expr& e, StateId from, StateId to) {
    Nfa& nfa = rule.nfa;
    const std::uint32_t counter = program_.counter(e.min, e.max);
    StateId first = nfa.add(), loop = nfa.add(), body = nfa.add(), done = nfa.add();
    nfa.letter(from, first, program_.letter(Op::kBeginCount, counter));
    nfa.letter(first, body, program_.letter(Op::kAgain));
    nfa.letter(loop, body, program_.letter(Op::kAgain));
    nfa.letter(loop, done, program_.letter(Op::kEndCount));
    if (e.min == 0) nfa.letter(first, done, program_.letter(Op::kEndCount));
    nfa.epsilon(done, to);
    return write(rule, e.parts[0], body, loop);
  }

  const RuleSet& set_;
  std::string_view what_;
  Program& program_;
  Budget& budget_;
  std::vector<std::uint32_t> numbers_;  // of rules in the program
  std::vector<bool> in_place_, nullable_rule_, nullable_;
  std::vector<std::uint64_t> rule_size_;
};

Status write_dfa(Program& program, const Dfa& dfa) {
  program.root = program.add_rule("root");
  Program::Rule& rule = program.rules[program.root];
  rule.nfa.copy(rule.start, rule.final, dfa);
  return Ok{};
}

Status write_choice(Program& program, const ConstraintSpec& spec, std::string_view what) {
  if (spec.choices.empty() || spec.choices.size() > kMaxConstraintChoices)
    return make_error(ErrorCode::kInvalid, "{}: found {} choices, allowed 1 to {}", what,
                      spec.choices.size(), kMaxConstraintChoices);
  program.root = program.add_rule("root");
  Program::Rule& rule = program.rules[program.root];
  std::size_t bytes = 0;
  for (const std::string& choice : spec.choices) {
    bytes += choice.size();
    if (choice.empty() || bytes > kMaxConstraintBytes || !utf8_valid(choice))
      return make_error(ErrorCode::kInvalid,
                        "{}: found an empty choice, one that is not UTF-8, or more than {} bytes "
                        "in all",
                        what, kMaxConstraintBytes);
    rule.nfa.text(rule.start, rule.final, choice);
  }
  return Ok{};
}

Status write_spec(Program& program, const ConstraintSpec& spec, std::string_view what,
                  Budget& budget) {
  const SchemaOptions options{.any_order = spec.any_order};
  switch (spec.kind) {
    case Kind::kGrammar: {
      VT_TRY(RuleSet set, parse_gbnf(spec.text, what));
      return GbnfWriter(set, what, program, budget).run();
    }
    case Kind::kRegex: {
      VT_TRY(Dfa dfa, regex_to_dfa(spec.text, Anchoring::kWhole, what, budget));
      return write_dfa(program, dfa);
    }
    case Kind::kChoice:
      return write_choice(program, spec, what);
    case Kind::kToolCalls:
      return write_tools(program, spec.tools, what, options, budget);
    case Kind::kJsonObject:
    case Kind::kJsonSchema: {
      const json::value object{{"type", "object"}};
      const bool any = spec.kind == Kind::kJsonObject;
      VT_TRY(program.root, add_schema(program, any ? object : spec.schema, what, options, budget));
      return Ok{};
    }
  }
  return Ok{};
}

std::string name_of(const ConstraintSpec& spec) {
  return spec.name.empty() ? kKindNames[static_cast<int>(spec.kind)] : spec.name;
}

}  // namespace

std::string cache_key(const ConstraintSpec& spec) {
  json::array tools;
  for (const auto& a : spec.tools.alternatives)
    tools.push_back(json::array{a.prefix, a.schema, a.suffix});
  json::array spelled;
  for (const auto& [id, text] : spec.spelled_tokens) spelled.push_back({id, text});
  const ToolCallSpec& t = spec.tools;
  json::value prelude;
  if (const auto& p = spec.prelude)
    prelude = {p->begin, p->end, p->next, p->without, p->inside, p->line_ends, p->may_end};
  json::array all{static_cast<int>(spec.kind),
                  spec.text,
                  spec.schema,
                  json::value_from(spec.choices),
                  spec.any_order,
                  tools,
                  t.begin,
                  t.separator,
                  t.end,
                  t.min_calls,
                  t.max_calls,
                  t.lazy,
                  t.trigger,
                  prelude,
                  spelled,
                  spec.before_instead,
                  spec.instead ? cache_key(*spec.instead) : ""};
  return json::serialize(all);
}

}  // namespace grammar

Result<grammar::Machine> compile_machine(const ConstraintSpec& spec, grammar::Budget budget) {
  const std::string what = grammar::name_of(spec);
  budget.what = what;
  grammar::Program program;
  VT_RETURN_IF_ERROR(grammar::write_spec(program, spec, what, budget));
  if (spec.instead) {
    const std::uint32_t calls = program.root;
    VT_RETURN_IF_ERROR(
        grammar::write_spec(program, *spec.instead, grammar::name_of(*spec.instead), budget));
    grammar::write_either(program, calls, spec.before_instead);
  }
  if (spec.prelude) grammar::write_prelude(program, *spec.prelude);
  return grammar::link(program, what, budget);
}

ConstraintCompiler::ConstraintCompiler(std::vector<std::string> pieces)
    : trie_(std::make_shared<grammar::TokenTrie>(std::move(pieces))),
      store_(grammar::make_mask_store()),
      cache_(kCacheBytes) {}

Result<std::shared_ptr<const Constraint>> ConstraintCompiler::compile(const ConstraintSpec& spec,
                                                                      std::string_view scope) {
  const std::string text = grammar::cache_key(spec);
  if (text.size() > kMaxSpecBytes)
    return make_error(ErrorCode::kTooLarge, "{}: found {} bytes of schemas, allowed up to {}",
                      grammar::name_of(spec), text.size(), kMaxSpecBytes);
  const std::string key = fmt::format("{}:{}{}", scope.size(), scope, text);
  {
    std::lock_guard lock(mutex_);
    if (auto found = cache_.find(key)) return found;
  }
  VT_TRY(grammar::Machine machine, compile_machine(spec));
  auto made =
      std::make_shared<const Constraint>(std::move(machine), trie_, store_, spec.spelled_tokens);
  std::lock_guard lock(mutex_);
  cache_.insert(key, made, made->bytes() + 2 * key.size());
  return made;
}

}  // namespace vitrine
