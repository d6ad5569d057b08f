// GBNF: the grammar notation of llama.cpp.
//
//   root ::= "yes" | "no" ("," " " root)?      # comment
//
// Strings with escapes, classes [a-z] and [^"], `.`, groups, * + ? {m} {m,} {m,n}, rule names of
// letters, digits, - and _. The answer must be what `root` derives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grammar/expr.h"

namespace vitrine::grammar {

inline constexpr std::size_t kMaxGrammarBytes = 1 << 20;
inline constexpr std::size_t kMaxRules = 10000;

struct RuleSet {
  struct Rule {
    std::string name;
    ExprId expr = 0;
    bool defined = false;
  };
  Exprs exprs;
  std::vector<Rule> rules;
  std::uint32_t root = 0;
};

Result<RuleSet> parse_gbnf(std::string_view text, std::string_view what);

}  // namespace vitrine::grammar
