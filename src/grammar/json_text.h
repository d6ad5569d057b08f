// Pieces of JSON text as parts of automata.
#pragma once

#include <functional>

#include "grammar/dfa.h"

namespace vitrine::grammar {

// Blank space where a value or a member may begin or a container may end: nothing, a space, or a
// line end and some indentation. Bounded, so that a model cannot write white space forever.
void write_blank(Nfa& nfa, StateId from, StateId to);
// One character of a string, in any of its spellings; surrogates only in pairs.
void write_string_char(Nfa& nfa, StateId from, StateId to);
// Any string, quotes included.
void write_string(Nfa& nfa, StateId from, StateId to);
// Strings whose contents `dfa` accepts, each character as it is, or escaped where JSON
// demands it. `done(label, state)` gets the state after the closing quote for each label.
void write_string_of(Nfa& nfa, StateId from, const Dfa& dfa,
                     const std::function<void(std::uint32_t label, StateId state)>& done);

// All texts in UTF-8; those of min to max characters.
Result<Dfa> any_text(Budget& budget);
Result<Dfa> text_of_length(std::uint64_t min, std::uint64_t max, Budget& budget);
// These texts; text i has label i + 1.
Result<Dfa> texts(const std::vector<std::string>& all, Budget& budget);

}  // namespace vitrine::grammar
