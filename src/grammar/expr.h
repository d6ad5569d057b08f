// Expressions: what regular expressions and GBNF rules are parsed into.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "grammar/dfa.h"

namespace vitrine::grammar {

inline constexpr std::uint64_t kUnbounded = 0xFFFFFFFFFFFFFFFF;
inline constexpr int kMaxExprDepth = 200;  // of nested groups

using ExprId = std::uint32_t;

struct Expr {
  enum class Kind : std::uint8_t {
    kText,      // these bytes
    kChars,     // one character of the set
    kSequence,  // all parts, in order
    kChoice,    // one of the parts
    kRepeat,    // parts[0], min to max times
    kRule,      // the rule of that number
    kBegin,     // nothing, before all text
    kEnd,       // nothing, after all text
  };
  Kind kind = Kind::kText;
  std::string text = {};
  CodeSet set = {};  // normalized
  std::vector<ExprId> parts = {};
  std::uint64_t min = 0, max = 0;
  std::uint32_t rule = 0;
};

// Parts come before what is made of them, so that a loop over the ids is bottom-up.
class Exprs {
 public:
  ExprId add(Expr expr) {
    all_.push_back(std::move(expr));
    return static_cast<ExprId>(all_.size() - 1);
  }
  ExprId text(std::string text);
  ExprId chars(CodeSet set);
  ExprId sequence(std::vector<ExprId> parts);
  ExprId choice(std::vector<ExprId> parts);
  ExprId repeat(ExprId part, std::uint64_t min, std::uint64_t max);
  ExprId rule(std::uint32_t number);
  const Expr& operator[](ExprId id) const { return all_[id]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(all_.size()); }

 private:
  std::vector<Expr> all_;
};

// Writes expressions into an automaton.
class ExprWriter {
 public:
  // Called for a reference to a rule, and for a repetition that is too long to unroll (null:
  // unrolled, within the budget).
  using OnRule = std::function<Status(std::uint32_t rule, StateId from, StateId to)>;
  using OnCount = std::function<Status(const Expr& repeat, StateId from, StateId to)>;

  ExprWriter(const Exprs& exprs, Nfa& nfa, Budget& budget)
      : exprs_(exprs), nfa_(nfa), budget_(budget) {}
  Status write(ExprId id, StateId from, StateId to);

  OnRule on_rule;
  OnCount on_count;
  static constexpr std::uint64_t kWriteOut = 256;  // repetitions

 private:
  Status repeat(const Expr& e, StateId from, StateId to);

  const Exprs& exprs_;
  Nfa& nfa_;
  Budget& budget_;
};

}  // namespace vitrine::grammar
