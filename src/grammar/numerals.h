// Sets of numbers as sets of their JSON spellings without exponent. Each set has either all or none
// of the spellings of a number, so that sets can be combined like sets of numbers.
#pragma once

#include <string>

#include "base/json.h"
#include "grammar/dfa.h"

namespace vitrine::grammar {

// Digits before and after the point in what is generated.
inline constexpr int kMaxWholeDigits = 20, kMaxFractionDigits = 20;

// A number as written: sign, digits, point.
struct Decimal {
  bool negative = false;
  std::string whole = "0";  // no leading zeros
  std::string fraction;     // no trailing zeros
  bool is_zero() const { return whole == "0" && fraction.empty(); }
};
// kTooLarge for more digits than can be handled.
Result<Decimal> to_decimal(const json::value& number);

Result<Dfa> all_numerals(Budget& budget);      // any number of digits
Result<Dfa> bounded_numerals(Budget& budget);  // the digits above
Result<Dfa> whole_numerals(Budget& budget);    // 7, -3, 5.0
Result<Dfa> plain_whole(Budget& budget);       // of each whole number the spelling without a point
// Numbers below, at and above the bound, as the flags say.
Result<Dfa> compared(const Decimal& bound, bool below, bool at, bool above, Budget& budget);
// Multiples of a number above 0; kTooLarge where the automaton would be.
Result<Dfa> multiples(const Decimal& of, Budget& budget);

// Any number, exponents too, within the digits above.
void write_number(Nfa& nfa, StateId from, StateId to);

}  // namespace vitrine::grammar
