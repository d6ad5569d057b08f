#include "grammar/expr.h"

namespace vitrine::grammar {

ExprId Exprs::text(std::string text) {
  return add({.kind = Expr::Kind::kText, .text = std::move(text)});
}
ExprId Exprs::chars(CodeSet set) {
  return add({.kind = Expr::Kind::kChars, .set = std::move(set)});
}

ExprId Exprs::sequence(std::vector<ExprId> parts) {
  if (parts.size() == 1) return parts[0];
  return add({.kind = Expr::Kind::kSequence, .parts = std::move(parts)});
}

ExprId Exprs::choice(std::vector<ExprId> parts) {
  if (parts.size() == 1) return parts[0];
  return add({.kind = Expr::Kind::kChoice, .parts = std::move(parts)});
}

ExprId Exprs::repeat(ExprId part, std::uint64_t min, std::uint64_t max) {
  return add({.kind = Expr::Kind::kRepeat, .parts = {part}, .min = min, .max = max});
}

ExprId Exprs::rule(std::uint32_t number) {
  return add({.kind = Expr::Kind::kRule, .rule = number});
}

Status ExprWriter::write(ExprId id, StateId from, StateId to) {
  const Expr& e = exprs_[id];
  if (!budget_.spend(1 + e.text.size() + e.set.ranges().size()) || nfa_.size() > 8 * budget_.states)
    return budget_.exhausted();
  switch (e.kind) {
    case Expr::Kind::kText:
      nfa_.text(from, to, e.text);
      return Ok{};
    case Expr::Kind::kChars:
      nfa_.chars(from, to, e.set);
      return Ok{};
    case Expr::Kind::kSequence:
      if (e.parts.empty()) nfa_.epsilon(from, to);
      for (std::size_t i = 0; i < e.parts.size(); ++i) {
        StateId next = i + 1 == e.parts.size() ? to : nfa_.add();
        VT_RETURN_IF_ERROR(write(e.parts[i], from, next));
        from = next;
      }
      return Ok{};
    case Expr::Kind::kChoice:
      for (ExprId part : e.parts) {
        // Separate states: a loop in one part must not lead into another.
        StateId a = nfa_.add(), b = nfa_.add();
        nfa_.epsilon(from, a);
        nfa_.epsilon(b, to);
        VT_RETURN_IF_ERROR(write(part, a, b));
      }
      return Ok{};
    case Expr::Kind::kRepeat:
      return repeat(e, from, to);
    case Expr::Kind::kRule:
      return on_rule(e.rule, from, to);
    case Expr::Kind::kBegin:
      nfa_.at_begin(from, to);
      return Ok{};
    case Expr::Kind::kEnd:
      nfa_.at_end(from, to);
      return Ok{};
  }
  return Ok{};
}

Status ExprWriter::repeat(const Expr& e, StateId from, StateId to) {
  const bool endless = e.max == kUnbounded;
  if (on_count && (endless ? e.min : e.max) > kWriteOut) return on_count(e, from, to);
  StateId at = nfa_.add();
  nfa_.epsilon(from, at);
  auto once = [&]() -> Status {
    StateId next = nfa_.add();
    VT_RETURN_IF_ERROR(write(e.parts[0], at, next));
    at = next;
    return Ok{};
  };
  for (std::uint64_t i = 0; i < e.min; ++i) VT_RETURN_IF_ERROR(once());
  if (endless) {
    StateId loop = nfa_.add();
    nfa_.epsilon(at, loop);
    nfa_.epsilon(loop, to);
    return write(e.parts[0], loop, loop);
  }
  for (std::uint64_t i = e.min; i < e.max; ++i) {
    nfa_.epsilon(at, to);
    VT_RETURN_IF_ERROR(once());
  }
  nfa_.epsilon(at, to);
  return Ok{};
}

}  // namespace vitrine::grammar
