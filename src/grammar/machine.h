// What every constraint is compiled into: a pushdown automaton over bytes.
//
// A rule is an automaton whose edges are bytes, calls of rules, or actions on the frame on top of
// the stack. Three kinds of frame: a return address; a counter, for repetitions too long to be
// written out; and the members of a JSON object seen so far. All states of all rules are numbered
// together and share one table of transitions.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "grammar/dfa.h"

namespace vitrine::grammar {

enum class Op : std::uint8_t {
  kCall,         // calls rule `arg`
  kBeginCount,   // a frame for counter `arg`
  kAgain,        // if the counter allows one more: counts it
  kEndCount,     // if the counter has enough: drops its frame
  kBeginObject,  // a frame for object `arg`
  kOpenKey,      // if some key may follow
  kKey,          // if the key with label `arg` may come: notes it
  kEndObject,    // if all that is required has come: drops the frame
  kCounted,      // marks the loop of a string whose characters counter `arg` counts
};

struct Counter {
  std::uint64_t min, max;
  bool operator==(const Counter&) const = default;
};

// Keys that the automaton tells apart have labels: 0 to named - 1 may come once each, the others
// any number of times.
struct ObjectSpec {
  bool ordered = false;  // named keys come in the order of their labels, the others after them
  std::uint32_t named = 0, labels = 0;
  std::vector<bool> required = {};  // by named label
  std::uint64_t min = 0, max = ~std::uint64_t{0};
};
inline constexpr std::uint32_t kMaxUnorderedKeys = 64;

// Rules as they are written by the readers of grammars and schemas.
struct Program {
  struct Rule {
    std::string name;
    Nfa nfa;
    StateId start, final;
    bool container;        // one level of nesting; see kMaxNesting
    bool framing = false;  // text around the constrained text, where markers of formats stand
  };
  std::deque<Rule> rules;
  std::vector<std::pair<Op, std::uint32_t>> letters;
  std::vector<Counter> counters;
  std::vector<ObjectSpec> objects;
  std::uint32_t root = 0;

  std::uint32_t add_rule(std::string name, bool container = false);
  std::uint32_t add_framing(std::string name);
  std::uint32_t letter(Op op, std::uint32_t arg = 0);
  std::uint32_t counter(std::uint64_t min, std::uint64_t max);

 private:
  std::map<std::pair<Op, std::uint32_t>, std::uint32_t> letter_ids_;
};

struct Action {
  Op op;
  bool tail;  // kCall: nothing is left to do after the call
  std::uint32_t arg;
  StateId to;
};

class Machine {
 public:
  enum Flag : std::uint8_t {
    kActions = 1,
    kReturn = 2,   // the rule may end here
    kCounted = 4,  // extra: the counter
    kKey = 8,      // inside a key; extra: the row of reach
    kBytes = 16,   // has transitions
    kWide = 32,    // has many transitions
  };
  struct Rule {
    StateId start;
    bool container;
    bool nullable;  // may end where it begins
    bool framing;
  };

  // Bytes of one class lead to the same state from every state.
  std::uint8_t class_of(std::uint8_t byte) const { return class_of_[byte]; }
  std::uint32_t classes() const { return classes_; }
  StateId next(StateId s, std::uint8_t byte) const { return next_[s * classes_ + class_of_[byte]]; }
  std::uint8_t flags(StateId s) const { return flags_[s]; }
  std::span<const Action> actions(StateId s) const {
    return std::span(actions_).subspan(action_at_[s], action_at_[s + 1] - action_at_[s]);
  }
  std::uint32_t extra(StateId s) const { return extra_[s]; }
  // Bits of the labels that the key being read may still end with.
  std::span<const std::uint64_t> reach(StateId s) const { return reach_[extra_[s]]; }
  const Rule& rule(std::uint32_t i) const { return rules_[i]; }
  std::uint32_t rules() const { return static_cast<std::uint32_t>(rules_.size()); }
  std::uint32_t rule_of(StateId s) const;
  const Counter& counter(std::uint32_t i) const { return counters_[i]; }
  const ObjectSpec& object(std::uint32_t i) const { return objects_[i]; }
  StateId start() const { return rules_[root_].start; }
  std::uint32_t states() const { return static_cast<std::uint32_t>(flags_.size()); }
  std::size_t bytes() const;

 private:
  friend class Linker;
  std::array<std::uint8_t, 256> class_of_{};
  std::uint32_t classes_ = 1, root_ = 0;
  std::vector<StateId> next_;
  std::vector<std::uint8_t> flags_;
  std::vector<std::uint32_t> extra_, action_at_;
  std::vector<Action> actions_;
  std::vector<std::vector<std::uint64_t>> reach_;
  std::vector<Rule> rules_;
  std::vector<Counter> counters_;
  std::vector<ObjectSpec> objects_;
};

// Refuses left recursion (`what` names the grammar) and grammars that no text satisfies. In the
// result every state can be completed.
Result<Machine> link(const Program& program, std::string_view what, Budget& budget);

}  // namespace vitrine::grammar
