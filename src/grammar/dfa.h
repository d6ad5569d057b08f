// Regular languages over bytes: nondeterministic automata to build them, deterministic ones to
// compute with and to run.
//
// Besides bytes an edge may carry a "letter": a number whose meaning belongs to the builder of the
// automaton (for example a call of another rule). Letters are ordinary symbols to everything here.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/budget.h"
#include "grammar/code_set.h"

namespace vitrine::grammar {

using StateId = std::uint32_t;
inline constexpr StateId kDead = 0xFFFFFFFF;

struct LetterEdge {
  std::uint32_t letter;
  StateId to;
  bool operator==(const LetterEdge&) const = default;
};

// Partial: a missing transition is kDead. State 0 is the start; there may be no states at all (the
// empty language).
class Dfa {
 public:
  std::array<std::uint8_t, 256> class_of{};  // bytes with the same transitions share a class
  std::uint32_t classes = 1;
  std::vector<StateId> next;                     // by state and class
  std::vector<std::uint32_t> label;              // 0: not accepting
  std::vector<std::vector<LetterEdge>> letters;  // by state; empty when there are none at all

  std::uint32_t size() const { return static_cast<std::uint32_t>(label.size()); }
  bool empty() const { return label.empty(); }
  StateId step(StateId s, std::uint8_t byte) const { return next[s * classes + class_of[byte]]; }
  bool accepts(std::string_view text) const;

  // Removes states from which nothing is accepted or which cannot be reached.
  void trim();
  // Trims and merges states that accept the same. Skipped when it would cost too much.
  void minimize(Budget& budget);
};

class Nfa {
 public:
  StateId add();
  void epsilon(StateId from, StateId to) { edge(from, to, Kind::kEpsilon); }
  void at_begin(StateId from, StateId to) { edge(from, to, Kind::kBegin); }  // only before all text
  void at_end(StateId from, StateId to) { edge(from, to, Kind::kEnd); }      // only after all text
  void letter(StateId from, StateId to, std::uint32_t letter);
  void bytes(StateId from, StateId to, std::uint8_t first, std::uint8_t last);
  void text(StateId from, StateId to, std::string_view text);
  void chars(StateId from, StateId to, const CodeSet& normalized);
  // All that `dfa` accepts.
  void copy(StateId from, StateId to, const Dfa& dfa);
  std::uint32_t size() const { return static_cast<std::uint32_t>(first_.size()); }

  // Minimal; accepting states have label 1.
  Result<Dfa> determinize(StateId start, StateId final, Budget& budget) const;

 private:
  friend class Determinizer;
  enum class Kind : std::uint8_t { kEpsilon, kBegin, kEnd, kBytes, kLetter };
  struct Edge {
    Kind kind;
    std::uint8_t first, last;
    std::uint32_t letter;
    StateId to;
    std::uint32_t next;  // of the same state
  };
  void edge(StateId from, StateId to, Kind kind, std::uint8_t first = 0, std::uint8_t last = 0,
            std::uint32_t letter = 0);

  std::vector<std::uint32_t> first_;  // edge of a state
  std::vector<Edge> edges_;
};

// Combines two automata; `label` says what a pair of labels (0: not accepting) becomes.
using Combine = std::uint32_t (*)(std::uint32_t a, std::uint32_t b);
Result<Dfa> product(const Dfa& a, const Dfa& b, Combine combine, Budget& budget);
Result<Dfa> intersect(const Dfa& a, const Dfa& b, Budget& budget);
Result<Dfa> unite(const Dfa& a, const Dfa& b, Budget& budget);
Result<Dfa> subtract(const Dfa& a, const Dfa& b, Budget& budget);

}  // namespace vitrine::grammar
