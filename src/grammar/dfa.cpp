#include "grammar/dfa.h"

#include <algorithm>

#include "grammar/numbering.h"

namespace vitrine::grammar {
namespace {

// Keeps the states marked true, in their order. Without the start state the result is empty.
void keep_states(Dfa& dfa, const std::vector<bool>& keep) {
  std::vector<StateId> renamed(dfa.size(), kDead);
  StateId n = 0;
  for (StateId s = 0; s < dfa.size(); ++s)
    if (keep[s]) renamed[s] = n++;
  auto rename = [&](StateId s) { return s == kDead ? kDead : renamed[s]; };
  Dfa out;
  out.class_of = dfa.class_of, out.classes = dfa.classes;
  for (StateId s = 0; s < dfa.size(); ++s) {
    if (!keep[s]) continue;
    for (std::uint32_t c = 0; c < dfa.classes; ++c)
      out.next.push_back(rename(dfa.next[s * dfa.classes + c]));
    out.label.push_back(dfa.label[s]);
    if (dfa.letters.empty()) continue;
    auto& letters = out.letters.emplace_back();
    for (LetterEdge e : dfa.letters[s])
      if (rename(e.to) != kDead) letters.push_back({e.letter, rename(e.to)});
  }
  dfa = std::move(out);
}

template <typename Use>
void for_each_target(const Dfa& dfa, StateId s, Use use) {
  for (std::uint32_t c = 0; c < dfa.classes; ++c)
    if (StateId t = dfa.next[s * dfa.classes + c]; t != kDead) use(t);
  if (!dfa.letters.empty())
    for (const LetterEdge& e : dfa.letters[s]) use(e.to);
}

std::vector<bool> reachable(const Dfa& dfa) {
  std::vector<bool> seen(dfa.size(), false);
  std::vector<StateId> work{0};
  seen[0] = true;
  while (!work.empty()) {
    StateId s = work.back();
    work.pop_back();
    for_each_target(dfa, s, [&](StateId t) {
      if (!seen[t]) seen[t] = true, work.push_back(t);
    });
  }
  return seen;
}

std::vector<bool> useful(const Dfa& dfa) {
  std::vector<std::vector<StateId>> sources(dfa.size());
  std::vector<bool> seen(dfa.size(), false);
  std::vector<StateId> work;
  for (StateId s = 0; s < dfa.size(); ++s) {
    StateId last = kDead;
    for_each_target(dfa, s, [&](StateId t) {
      if (t != last) sources[t].push_back(s);
      last = t;
    });
    if (dfa.label[s] != 0) seen[s] = true, work.push_back(s);
  }
  while (!work.empty()) {
    StateId s = work.back();
    work.pop_back();
    for (StateId t : sources[s])
      if (!seen[t]) seen[t] = true, work.push_back(t);
  }
  return seen;
}

}  // namespace

bool Dfa::accepts(std::string_view text) const {
  if (empty()) return false;
  StateId s = 0;
  for (char c : text)
    if ((s = step(s, static_cast<std::uint8_t>(c))) == kDead) return false;
  return label[s] != 0;
}

void Dfa::trim() {
  if (empty()) return;
  std::vector<bool> keep = reachable(*this), live = useful(*this);
  if (!live[0]) {
    *this = Dfa{};
    return;
  }
  for (StateId s = 0; s < size(); ++s) keep[s] = keep[s] && live[s];
  keep_states(*this, keep);
}

// Moore's refinement: states are told apart by their label, then by where their edges lead, until
// nothing changes.
void Dfa::minimize(Budget& budget) {
  trim();
  if (size() < 2) return;
  std::vector<std::uint32_t> block(label), refined(size()), key;
  std::uint32_t blocks = 0;
  Numbering numbers;
  while (true) {
    // A long chain takes as many rounds as it has states; such an automaton is small already.
    constexpr std::uint64_t kPerRound = 4;
    const std::uint64_t cost = std::uint64_t{size()} * (classes + 4) / kPerRound;
    if (cost > (budget.work - std::min(budget.work, budget.used)) / 8) return;
    budget.spend(cost);
    numbers.clear();
    for (StateId s = 0; s < size(); ++s) {
      key.assign(1, block[s]);
      for (std::uint32_t c = 0; c < classes; ++c) {
        StateId t = next[s * classes + c];
        key.push_back(t == kDead ? kDead : block[t]);
      }
      if (!letters.empty())
        for (const LetterEdge& e : letters[s]) key.push_back(e.letter), key.push_back(block[e.to]);
      refined[s] = numbers.insert(key).first;
    }
    block.swap(refined);
    if (numbers.size() == blocks) break;
    blocks = numbers.size();
  }
  if (blocks == size()) return;
  std::vector<StateId> first(blocks, kDead);  // blocks are numbered by their first state
  for (StateId s = size(); s-- > 0;) first[block[s]] = s;
  std::vector<bool> keep(size(), false);
  for (StateId s : first) keep[s] = true;
  for (StateId& t : next)
    if (t != kDead) t = first[block[t]];
  for (auto& list : letters)
    for (LetterEdge& e : list) e.to = first[block[e.to]];
  keep_states(*this, keep);
}

StateId Nfa::add() {
  first_.push_back(kDead);
  return size() - 1;
}

void Nfa::edge(StateId from, StateId to, Kind kind, std::uint8_t first, std::uint8_t last,
               std::uint32_t letter) {
  edges_.push_back({kind, first, last, letter, to, first_[from]});
  first_[from] = static_cast<std::uint32_t>(edges_.size() - 1);
}

void Nfa::letter(StateId from, StateId to, std::uint32_t letter) {
  edge(from, to, Kind::kLetter, 0, 0, letter);
}

void Nfa::bytes(StateId from, StateId to, std::uint8_t first, std::uint8_t last) {
  edge(from, to, Kind::kBytes, first, last);
}

void Nfa::text(StateId from, StateId to, std::string_view text) {
  if (text.empty()) return epsilon(from, to);
  for (std::size_t i = 0; i < text.size(); ++i) {
    StateId next = i + 1 == text.size() ? to : add();
    auto byte = static_cast<std::uint8_t>(text[i]);
    bytes(from, next, byte, byte);
    from = next;
  }
}

void Nfa::chars(StateId from, StateId to, const CodeSet& set) {
  for_each_sequence(set, [&](const Utf8Sequence& sequence) {
    StateId at = from;
    for (int i = 0; i < sequence.size; ++i) {
      StateId next = i + 1 == sequence.size ? to : add();
      bytes(at, next, sequence.bytes[i].first, sequence.bytes[i].last);
      at = next;
    }
  });
}

void Nfa::copy(StateId from, StateId to, const Dfa& dfa) {
  if (dfa.empty()) return;
  const StateId base = size();
  for (StateId s = 0; s < dfa.size(); ++s) add();
  epsilon(from, base);
  for (StateId s = 0; s < dfa.size(); ++s) {
    if (dfa.label[s] != 0) epsilon(base + s, to);
    for (int b = 0; b < 256;) {
      const StateId t = dfa.step(s, static_cast<std::uint8_t>(b));
      int end = b + 1;
      while (end < 256 && dfa.step(s, static_cast<std::uint8_t>(end)) == t) ++end;
      if (t != kDead)
        bytes(base + s, base + t, static_cast<std::uint8_t>(b), static_cast<std::uint8_t>(end - 1));
      b = end;
    }
    if (!dfa.letters.empty())
      for (const LetterEdge& e : dfa.letters[s]) letter(base + s, base + e.to, e.letter);
  }
}

class Determinizer {
 public:
  Determinizer(const Nfa& nfa, StateId final, Budget& budget)
      : nfa_(nfa), final_(final), budget_(budget), kept_(nfa.size(), 0), mark_(nfa.size(), 0) {
    kept_[final] = 1;
    for (StateId s = 0; s < nfa.size(); ++s)
      for (std::uint32_t e = nfa.first_[s]; e != kDead; e = nfa.edges_[e].next)
        if (nfa.edges_[e].kind != Kind::kEpsilon) kept_[s] = 1;
  }

  Result<Dfa> run(StateId start) {
    find_classes();
    std::vector<StateId> set{start};
    number(set, true);
    for (StateId s = 0; s < sets_.size(); ++s)
      if (sets_.size() > budget_.states || !expand(s)) return budget_.exhausted();
    if (std::all_of(out_.letters.begin(), out_.letters.end(), [](auto& l) { return l.empty(); }))
      out_.letters.clear();
    out_.minimize(budget_);
    return std::move(out_);
  }

 private:
  using Kind = Nfa::Kind;

  void find_classes() {
    std::array<bool, 257> cut{};
    for (const Nfa::Edge& e : nfa_.edges_)
      if (e.kind == Kind::kBytes) cut[e.first] = true, cut[e.last + 1] = true;
    std::uint32_t n = 0;
    for (int b = 0; b < 256; ++b) {
      if (b > 0 && cut[b]) ++n;
      out_.class_of[b] = static_cast<std::uint8_t>(n);
    }
    out_.classes = n + 1;
    targets_.resize(out_.classes);
  }

  // Adds the epsilon closure.
  void close(std::vector<StateId>& set, bool begin, bool end) {
    ++round_;
    std::size_t kept = 0;
    for (StateId s : set)
      if (mark_[s] != round_) mark_[s] = round_, set[kept++] = s;
    set.resize(kept);
    for (std::size_t i = 0; i < set.size(); ++i) {
      for (std::uint32_t e = nfa_.first_[set[i]]; e != kDead; e = nfa_.edges_[e].next) {
        const Nfa::Edge& edge = nfa_.edges_[e];
        ++steps_;
        const bool free = edge.kind == Kind::kEpsilon || (edge.kind == Kind::kBegin && begin) ||
                          (edge.kind == Kind::kEnd && end);
        if (free && mark_[edge.to] != round_) mark_[edge.to] = round_, set.push_back(edge.to);
      }
    }
  }

  StateId target(std::vector<StateId>& set) {
    if (set.empty()) return kDead;
    const StateId found = number(set, false);
    set.clear();
    return found;
  }

  StateId number(std::vector<StateId>& set, bool begin) {
    close(set, begin, false);
    std::erase_if(set, [&](StateId s) { return kept_[s] == 0; });
    std::sort(set.begin(), set.end());
    steps_ += set.size();
    return sets_.insert(set).first;
  }

  bool expand(StateId s) {
    for (StateId n : sets_[s]) {
      for (std::uint32_t e = nfa_.first_[n]; e != kDead; e = nfa_.edges_[e].next) {
        const Nfa::Edge& edge = nfa_.edges_[e];
        ++steps_;
        if (edge.kind == Kind::kLetter) letters_.push_back({edge.letter, edge.to});
        if (edge.kind != Kind::kBytes) continue;
        const std::uint32_t last = out_.class_of[edge.last];
        steps_ += last - out_.class_of[edge.first];
        for (std::uint32_t c = out_.class_of[edge.first]; c <= last; ++c)
          targets_[c].push_back(edge.to);
      }
    }
    for (std::uint32_t c = 0; c < out_.classes; ++c) out_.next.push_back(target(targets_[c]));
    add_letters();
    at_end_.assign(sets_[s].begin(), sets_[s].end());
    close(at_end_, s == 0, true);
    out_.label.push_back(mark_[final_] == round_ ? 1 : 0);
    steps_ += out_.classes;
    return budget_.spend(std::exchange(steps_, 0));
  }

  void add_letters() {
    auto& out = out_.letters.emplace_back();
    std::sort(letters_.begin(), letters_.end(),
              [](const LetterEdge& a, const LetterEdge& b) { return a.letter < b.letter; });
    for (std::size_t i = 0; i < letters_.size();) {
      const std::uint32_t letter = letters_[i].letter;
      std::vector<StateId> set;
      for (; i < letters_.size() && letters_[i].letter == letter; ++i)
        set.push_back(letters_[i].to);
      out.push_back({letter, target(set)});
    }
    letters_.clear();
  }

  const Nfa& nfa_;
  StateId final_;
  Budget& budget_;
  Dfa out_;
  Numbering sets_;
  std::vector<std::vector<StateId>> targets_;  // by class, of the set being expanded
  std::vector<LetterEdge> letters_;
  std::vector<StateId> at_end_;
  // States that identify a set: states with epsilon edges only do not matter.
  std::vector<std::uint8_t> kept_;
  std::vector<std::uint32_t> mark_;  // the round in which a state was reached
  std::uint32_t round_ = 0;
  std::uint64_t steps_ = 0;
};

Result<Dfa> Nfa::determinize(StateId start, StateId final, Budget& budget) const {
  return Determinizer(*this, final, budget).run(start);
}

Result<Dfa> product(const Dfa& a, const Dfa& b, Combine combine, Budget& budget) {
  Dfa out;
  Numbering classes, states;
  for (int i = 0; i < 256; ++i)
    out.class_of[i] = static_cast<std::uint8_t>(
        classes.insert(std::array<std::uint32_t, 2>{a.class_of[i], b.class_of[i]}).first);
  out.classes = classes.size();
  auto number = [&](StateId x, StateId y) {
    if ((x == kDead && combine(0, 1) == 0) || (y == kDead && combine(1, 0) == 0)) return kDead;
    return x == kDead && y == kDead ? kDead : states.insert(std::array{x, y}).first;
  };
  if (number(a.empty() ? kDead : 0, b.empty() ? kDead : 0) == kDead) return Dfa{};
  for (StateId s = 0; s < states.size(); ++s) {
    if (states.size() > budget.states || !budget.spend(2 * out.classes)) return budget.exhausted();
    const StateId x = states[s][0], y = states[s][1];
    out.label.push_back(combine(x == kDead ? 0 : a.label[x], y == kDead ? 0 : b.label[y]));
    for (std::uint32_t c = 0; c < out.classes; ++c) {
      const StateId tx = x == kDead ? kDead : a.next[x * a.classes + classes[c][0]];
      const StateId ty = y == kDead ? kDead : b.next[y * b.classes + classes[c][1]];
      out.next.push_back(number(tx, ty));
    }
  }
  out.minimize(budget);
  return out;
}

Result<Dfa> intersect(const Dfa& a, const Dfa& b, Budget& budget) {
  return product(
      a, b, [](auto x, auto y) { return x && y ? 1u : 0u; }, budget);
}
Result<Dfa> unite(const Dfa& a, const Dfa& b, Budget& budget) {
  return product(
      a, b, [](auto x, auto y) { return x || y ? 1u : 0u; }, budget);
}
Result<Dfa> subtract(const Dfa& a, const Dfa& b, Budget& budget) {
  return product(
      a, b, [](auto x, auto y) { return x && !y ? 1u : 0u; }, budget);
}

}  // namespace vitrine::grammar
