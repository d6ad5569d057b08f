// Regular expressions as deterministic automata over UTF-8.
//
// The syntax is that of ECMAScript (which JSON Schema uses) as far as it is regular: alternation,
// groups, classes, \d \w \s and their complements, escapes, quantifiers (lazy ones mean the same
// here), ^ and $. Lookaround, backreferences, word boundaries and Unicode properties are refused.
#pragma once

#include <string_view>

#include "grammar/dfa.h"

namespace vitrine::grammar {

inline constexpr std::size_t kMaxPatternBytes = 64 << 10;

enum class Anchoring {
  kWhole,   // the whole text matches
  kSearch,  // some part of the text matches
};

// `what` names the pattern in errors. Every text that is accepted is valid UTF-8.
Result<Dfa> regex_to_dfa(std::string_view pattern, Anchoring anchoring, std::string_view what,
                         Budget& budget);

}  // namespace vitrine::grammar
