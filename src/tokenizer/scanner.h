// Linear-time matchers for the patterns that tokenizers use.
//
// A pattern is a list of alternatives, tried in order at each place. Nearly all published patterns
// are built from a few shapes of alternatives (a run of one class with an optional character before
// and a run after; contractions; white space up to a line end...). Each shape is matched here by
// hand without backtracking, so that any text takes linear time. A pattern with any other
// alternative is left to PCRE2.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/unicode.h"

namespace vitrine {

class Scanner {
 public:
  // The regular expression as a scanner, or nothing when it has a part that no shape covers.
  static std::optional<Scanner> from_pattern(std::string_view pattern);
  // Matches every single character of the set.
  static Scanner each_of(CharSet set);

  // All matches within [range.begin, range.end) of `chars`, in order; look-ahead stops at the
  // range.
  void find_all(const Chars& chars, Span range, std::vector<Span>& out) const;

  struct Item {
    CharSet set;
    std::uint32_t min = 1, max = 1;
    bool possessive = false;
  };
  enum class Shape {
    kRun,           // [lead] body{min,max} [tail{0,max}] [contraction]
    kTwoRuns,       // [lead] first* second+ [contraction], where the sets may overlap
    kFixed,         // one character of each set
    kContraction,   // 's 't 're 've 'm 'll 'd
    kLineEnds,      // \s*[\r\n]+
    kSpacesBefore,  // \s+(?!\S)
    kSpacesAtEnd,   // \s+$
    kSpacesToEnd,   // \s++$
    kDigitGroups,   // one to three digits, so that groups of three follow up to the run's end
  };
  enum class Contractions : std::uint8_t { kNone, kLower, kAnyCase, kFolded };
  struct Arm {
    Shape shape = Shape::kRun;
    std::optional<Item> lead;
    std::vector<Item> items;  // kRun: body, tail; kTwoRuns: first, second; kFixed: all
    Contractions contractions = Contractions::kNone;
    bool group_in_words = false;  // kDigitGroups: also where a word character follows the digits
    std::size_t memo = 0;         // its index among the arms that remember runs
  };

  // Arms of one scanner that may remember runs.
  static constexpr std::size_t kMostMemos = 8;

 private:
  std::vector<Arm> arms_;
};

}  // namespace vitrine
