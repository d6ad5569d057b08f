#include "grammar/follow.h"

#include <algorithm>

namespace vitrine::grammar {
namespace {

constexpr std::size_t kEnd = 256;  // the bit for "the text may end"
using Next = std::bitset<257>;

// Inclusion of sets: an edge says that `in` contains all of `of`.
class Flow {
 public:
  explicit Flow(std::size_t sets) : sets_(sets) {}

  Next& operator[](std::size_t i) { return sets_[i]; }
  void edge(std::uint32_t of, std::uint32_t in, bool with_end) {
    edges_.push_back({of, in, with_end});
  }

  void run() {
    std::sort(edges_.begin(), edges_.end(),
              [](const Edge& a, const Edge& b) { return a.of < b.of; });
    std::vector<std::uint32_t> work;
    std::vector<bool> waits(sets_.size(), false);
    for (const Edge& e : edges_)
      if (!waits[e.of]) waits[e.of] = true, work.push_back(e.of);
    while (!work.empty()) {
      const std::uint32_t of = work.back();
      work.pop_back();
      waits[of] = false;
      auto it = std::lower_bound(edges_.begin(), edges_.end(), of,
                                 [](const Edge& e, std::uint32_t i) { return e.of < i; });
      for (; it != edges_.end() && it->of == of; ++it) {
        Next more = sets_[of];
        if (!it->with_end) more.reset(kEnd);
        more |= sets_[it->in];
        if (more == sets_[it->in]) continue;
        sets_[it->in] = more;
        if (!waits[it->in]) waits[it->in] = true, work.push_back(it->in);
      }
    }
  }

 private:
  struct Edge {
    std::uint32_t of, in;
    bool with_end;
  };
  std::vector<Next> sets_;
  std::vector<Edge> edges_;
};

// By state: what can come next inside its rule and what that calls.
Flow next_in_rule(const Machine& machine) {
  Flow next(machine.states());
  for (StateId s = 0; s < machine.states(); ++s) {
    for (std::size_t b = 0; b < 256; ++b)
      if (machine.next(s, static_cast<std::uint8_t>(b)) != kDead) next[s].set(b);
    if (machine.flags(s) & Machine::kReturn) next[s].set(kEnd);
    for (const Action& a : machine.actions(s)) {
      const bool call = a.op == Op::kCall;
      if (call) next.edge(machine.rule(a.arg).start, s, false);
      if (!call || machine.rule(a.arg).nullable) next.edge(a.to, s, true);
    }
  }
  next.run();
  return next;
}

}  // namespace

std::vector<ByteSet> bytes_after_rules(const Machine& machine) {
  Flow next = next_in_rule(machine);
  Flow after(machine.rules());
  for (StateId s = 0; s < machine.states(); ++s) {
    for (const Action& a : machine.actions(s)) {
      if (a.op != Op::kCall) continue;
      after[a.arg] |= next[a.to];
      if (next[a.to].test(kEnd)) after.edge(machine.rule_of(s), a.arg, true);
    }
  }
  after.run();
  std::vector<ByteSet> out(machine.rules());
  for (std::size_t r = 0; r < out.size(); ++r)
    for (std::size_t b = 0; b < 256; ++b) out[r][b] = after[r][b];
  return out;
}

std::vector<StateId> states_after(const Machine& machine, std::uint8_t byte) {
  std::vector<std::vector<StateId>> returns(machine.rules());  // by rule: where its calls go on
  for (StateId s = 0; s < machine.states(); ++s)
    for (const Action& a : machine.actions(s))
      if (a.op == Op::kCall) returns[a.arg].push_back(a.to);
  std::vector<StateId> out;
  std::vector<bool> seen(machine.states(), false);
  std::vector<bool> ended(machine.rules(), false);
  auto visit = [&](StateId s) {
    if (!seen[s]) seen[s] = true, out.push_back(s);
  };
  for (StateId s = 0; s < machine.states(); ++s)
    if (const StateId to = machine.next(s, byte);
        to != kDead && !(machine.flags(s) & Machine::kWide))
      visit(to);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const StateId s = out[i];
    for (const Action& a : machine.actions(s)) {
      const bool call = a.op == Op::kCall;
      if (call) visit(machine.rule(a.arg).start);
      if (!call || machine.rule(a.arg).nullable) visit(a.to);
    }
    if (const std::uint32_t r = machine.rule_of(s);
        (machine.flags(s) & Machine::kReturn) && !ended[r]) {
      ended[r] = true;
      for (StateId to : returns[r]) visit(to);
    }
  }
  return out;
}

}  // namespace vitrine::grammar
