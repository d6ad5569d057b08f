// Text around constrained text: tool calls, and reasoning in front.
#include <array>

#include "grammar/compile.h"

namespace vitrine::grammar {
namespace {

// From `start`: text that does not contain `mark`, then `mark`. Its automaton is that of Knuth,
// Morris and Pratt. `may_end`: the text may also end before the mark, and the rule with it.
void write_until(Program::Rule& rule, StateId start, std::string_view mark, StateId after,
                 bool may_end) {
  const std::size_t n = mark.size();
  std::vector<StateId> at{rule.nfa.add()};
  rule.nfa.epsilon(start, at[0]);
  for (std::size_t k = 1; k < n; ++k) at.push_back(rule.nfa.add());
  at.push_back(after);
  std::vector<std::array<std::size_t, 256>> next(n);
  for (std::size_t k = 0, b = 0; k < n; ++k) {
    const auto wanted = static_cast<std::uint8_t>(mark[k]);
    for (int c = 0; c < 256; ++c) next[k][c] = k == 0 ? 0 : next[b][c];
    const std::size_t fallback = k == 0 ? 0 : next[b][wanted];
    next[k][wanted] = k + 1;
    b = fallback;
  }
  for (std::size_t k = 0; k < n; ++k) {
    if (may_end) rule.nfa.epsilon(at[k], rule.final);
    for (int c = 0; c < 256; ++c)
      rule.nfa.bytes(at[k], at[next[k][c]], static_cast<std::uint8_t>(c),
                     static_cast<std::uint8_t>(c));
  }
}

// Any text whose first character other than white space is not `mark`.
void write_unlike(Program::Rule& rule, char mark) {
  StateId rest = rule.nfa.add();
  rule.nfa.epsilon(rule.start, rule.final);
  rule.nfa.epsilon(rest, rule.final);
  rule.nfa.bytes(rest, rest, 0, 255);
  for (int c = 0; c < 256; ++c) {
    const bool space = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte != static_cast<std::uint8_t>(mark))
      rule.nfa.bytes(rule.start, space ? rule.start : rest, byte, byte);
  }
}

bool usable(const ToolCallSpec& tools) {
  constexpr std::size_t kMaxMark = 256;
  if (tools.alternatives.empty() || tools.alternatives[0].prefix.empty()) return false;
  if (tools.min_calls > tools.max_calls || tools.max_calls == 0) return false;
  return tools.trigger.size() <= kMaxMark && tools.begin.starts_with(tools.trigger) &&
         (!tools.lazy || tools.begin.empty() || !tools.trigger.empty());
}

}  // namespace

Status write_tools(Program& program, const ToolCallSpec& tools, std::string_view what,
                   SchemaOptions options, Budget& budget) {
  if (!usable(tools)) return make_error(ErrorCode::kInvalid, "{}: no call can be made of it", what);
  program.root = program.add_framing("root");
  const std::uint32_t call = program.add_framing("call");
  {
    Program::Rule& rule = program.rules[call];
    for (const ToolCallSpec::Alternative& a : tools.alternatives) {
      VT_TRY(std::uint32_t json, add_schema(program, a.schema, what, options, budget));
      StateId first = rule.nfa.add(), last = rule.nfa.add();
      rule.nfa.text(rule.start, first, a.prefix);
      rule.nfa.letter(first, last, program.letter(Op::kCall, json));
      rule.nfa.text(last, rule.final, a.suffix);
    }
  }
  Program::Rule& rule = program.rules[program.root];
  StateId from = rule.nfa.add(), begun = rule.nfa.add();
  if (tools.lazy && !tools.begin.empty()) {
    write_until(rule, rule.start, tools.trigger, from, true);
    rule.nfa.text(from, begun, tools.begin.substr(tools.trigger.size()));
  } else {
    if (tools.lazy) write_unlike(rule, tools.alternatives[0].prefix[0]);
    rule.nfa.epsilon(rule.start, from);
    rule.nfa.text(from, begun, tools.begin);
  }
  // The first call, then the counted rest of them.
  StateId at = rule.nfa.add(), loop = rule.nfa.add(), more = rule.nfa.add(), done = rule.nfa.add();
  const std::uint64_t min = tools.min_calls > 0 ? tools.min_calls - 1 : 0;
  rule.nfa.letter(begun, at, program.letter(Op::kCall, call));
  const std::uint32_t counter = program.counter(min, tools.max_calls - 1);
  rule.nfa.letter(at, loop, program.letter(Op::kBeginCount, counter));
  rule.nfa.letter(loop, more, program.letter(Op::kAgain));
  rule.nfa.letter(loop, done, program.letter(Op::kEndCount));
  StateId separated = rule.nfa.add();
  rule.nfa.text(more, separated, tools.separator);
  rule.nfa.letter(separated, loop, program.letter(Op::kCall, call));
  rule.nfa.text(done, rule.final, tools.end);
  return Ok{};
}

void write_either(Program& program, std::uint32_t one, std::string_view before) {
  const std::uint32_t other = std::exchange(program.root, program.add_framing("either"));
  Program::Rule& rule = program.rules[program.root];
  StateId ready = rule.nfa.add();
  rule.nfa.letter(rule.start, rule.final, program.letter(Op::kCall, one));
  rule.nfa.text(rule.start, ready, before);
  rule.nfa.letter(ready, rule.final, program.letter(Op::kCall, other));
}

void write_prelude(Program& program, const ConstraintSpec::Prelude& prelude) {
  const std::uint32_t body = std::exchange(program.root, program.add_framing("whole"));
  Program::Rule& rule = program.rules[program.root];
  StateId ready = rule.nfa.add();
  rule.nfa.letter(ready, rule.final, program.letter(Op::kCall, body));
  if (!prelude.inside) rule.nfa.text(rule.start, ready, prelude.without);
  if (prelude.end.empty()) return;
  StateId inside = rule.nfa.add(), ended = rule.nfa.add(), after = rule.nfa.add();
  if (prelude.inside)
    rule.nfa.epsilon(rule.start, inside);
  else
    rule.nfa.text(rule.start, inside, prelude.begin);
  write_until(rule, inside, prelude.end, ended, prelude.may_end);
  rule.nfa.text(ended, after, prelude.next);
  rule.nfa.epsilon(after, ready);
  if (!prelude.line_ends) return;
  rule.nfa.text(after, ready, "\n");
  rule.nfa.text(after, ready, "\n\n");
}

}  // namespace vitrine::grammar
