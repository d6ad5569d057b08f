#include "grammar/machine.h"
#include "base/utf8.h"

#include <algorithm>

namespace vitrine::grammar {

std::uint32_t Program::add_rule(std::string name, bool container) {
  Rule& rule = rules.emplace_back(Rule{std::move(name), {}, 0, 0, container, false});
  rule.start = rule.nfa.add();
  rule.final = rule.nfa.add();
  return static_cast<std::uint32_t>(rules.size() - 1);
}

std::uint32_t Program::add_framing(std::string name) {
  const std::uint32_t made = add_rule(std::move(name));
  rules[made].framing = true;
  return made;
}

std::uint32_t Program::letter(Op op, std::uint32_t arg) {
  auto [it, added] = letter_ids_.try_emplace({op, arg}, letters.size());
  if (added) letters.emplace_back(op, arg);
  return it->second;
}

std::uint32_t Program::counter(std::uint64_t min, std::uint64_t max) {
  const Counter wanted{min, max};
  auto it = std::find(counters.begin(), counters.end(), wanted);
  if (it == counters.end()) it = counters.insert(it, wanted);
  return static_cast<std::uint32_t>(it - counters.begin());
}

// Rules lie one after the other; one without states begins where the next one does.
std::uint32_t Machine::rule_of(StateId s) const {
  auto after = std::upper_bound(rules_.begin(), rules_.end(), s,
                                [](StateId state, const Rule& r) { return state < r.start; });
  return static_cast<std::uint32_t>(after - rules_.begin()) - 1;
}

std::size_t Machine::bytes() const {
  std::size_t total = sizeof(*this) + next_.size() * sizeof(StateId) + flags_.size() * 9 +
                      actions_.size() * sizeof(Action);
  for (const auto& row : reach_) total += row.size() * 8 + sizeof(row);
  return total;
}

class Linker {
 public:
  Linker(const Program& program, std::string_view what, Budget& budget)
      : program_(program), what_(what), budget_(budget) {}

  Result<Machine> run() {
    for (const Program::Rule& rule : program_.rules) {
      VT_TRY(Dfa dfa, rule.nfa.determinize(rule.start, rule.final, budget_));
      dfas_.push_back(std::move(dfa));
    }
    if (!drop_unproductive()) return budget_.exhausted();
    if (dfas_[program_.root].empty())
      return make_error(ErrorCode::kInvalid, "{}: no text satisfies it", what_);
    if (!find_nullable()) return budget_.exhausted();
    VT_RETURN_IF_ERROR(refuse_left_recursion());
    VT_RETURN_IF_ERROR(lay_out());
    return std::move(out_);
  }

 private:
  std::pair<Op, std::uint32_t> meaning(const LetterEdge& e) const {
    return program_.letters[e.letter];
  }
  bool is_call(const LetterEdge& e) const { return meaning(e).first == Op::kCall; }
  std::uint32_t rules() const { return static_cast<std::uint32_t>(dfas_.size()); }

  template <typename Use>
  static void for_each_letter(const Dfa& dfa, StateId s, Use use) {
    if (!dfa.letters.empty())
      for (const LetterEdge& e : dfa.letters[s]) use(e);
  }

  // Whether the end of a rule can be reached through bytes (if they may be used), actions and calls
  // of rules that are marked.
  bool can_end(const Dfa& dfa, const std::vector<bool>& marked, bool with_bytes) const {
    if (dfa.empty()) return false;
    std::vector<bool> seen(dfa.size(), false);
    std::vector<StateId> work{0};
    seen[0] = true;
    auto visit = [&](StateId t) {
      if (t != kDead && !seen[t]) seen[t] = true, work.push_back(t);
    };
    while (!work.empty()) {
      StateId s = work.back();
      work.pop_back();
      if (dfa.label[s] != 0) return true;
      for (std::uint32_t c = 0; with_bytes && c < dfa.classes; ++c)
        visit(dfa.next[s * dfa.classes + c]);
      for_each_letter(dfa, s, [&](const LetterEdge& e) {
        if (!is_call(e) || marked[meaning(e).second]) visit(e.to);
      });
    }
    return false;
  }

  // Marks rules until no more can be marked.
  bool mark_rules(std::vector<bool>& marked, bool with_bytes) {
    marked.assign(rules(), false);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t r = 0; r < rules(); ++r) {
        if (marked[r]) continue;
        if (!budget_.spend(dfas_[r].size() + 1)) return false;
        if (can_end(dfas_[r], marked, with_bytes)) marked[r] = changed = true;
      }
    }
    return true;
  }

  bool drop_unproductive() {
    std::vector<bool> productive;
    if (!mark_rules(productive, true)) return false;
    for (Dfa& dfa : dfas_) {
      for (auto& list : dfa.letters)
        std::erase_if(list, [&](const LetterEdge& e) {
          return is_call(e) && !productive[meaning(e).second];
        });
      dfa.trim();
    }
    return true;
  }

  bool find_nullable() { return mark_rules(nullable_, false); }

  // Rules that `r` calls before it has consumed anything.
  std::vector<std::uint32_t> first_calls(std::uint32_t r) const {
    const Dfa& dfa = dfas_[r];
    std::vector<std::uint32_t> out;
    if (dfa.empty()) return out;
    std::vector<bool> seen(dfa.size(), false);
    std::vector<StateId> work{0};
    seen[0] = true;
    while (!work.empty()) {
      StateId s = work.back();
      work.pop_back();
      for_each_letter(dfa, s, [&](const LetterEdge& e) {
        if (is_call(e)) out.push_back(meaning(e).second);
        if ((!is_call(e) || nullable_[meaning(e).second]) && !seen[e.to])
          seen[e.to] = true, work.push_back(e.to);
      });
    }
    return out;
  }

  Status refuse_left_recursion() {
    enum : std::uint8_t { kNew, kOpen, kDone };
    std::vector<std::uint8_t> mark(rules(), kNew);
    std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> path;
    for (std::uint32_t r = 0; r < rules(); ++r) {
      if (mark[r] != kNew) continue;
      path.emplace_back(r, first_calls(r));
      mark[r] = kOpen;
      while (!path.empty()) {
        auto& [rule, calls] = path.back();
        if (calls.empty()) {
          mark[rule] = kDone;
          path.pop_back();
          continue;
        }
        const std::uint32_t next = calls.back();
        calls.pop_back();
        if (mark[next] == kOpen)
          return make_error(ErrorCode::kUnsupported,
                            "{}: rule \"{}\" is left-recursive: it can begin with itself", what_,
                            shortened(program_.rules[next].name));
        if (mark[next] == kNew) {
          mark[next] = kOpen;
          path.emplace_back(next, first_calls(next));
        }
      }
    }
    return Ok{};
  }

  Status lay_out() {
    std::vector<StateId> base;
    StateId states = 0;
    for (const Dfa& dfa : dfas_) {
      base.push_back(states);
      states += dfa.size();
      const std::size_t r = base.size() - 1;
      const Program::Rule& rule = program_.rules[r];
      out_.rules_.push_back({base.back(), rule.container, nullable_[r], rule.framing});
    }
    if (states > budget_.states) return budget_.exhausted();
    join_classes();
    out_.root_ = program_.root;
    out_.counters_ = program_.counters;
    out_.objects_ = program_.objects;
    out_.next_.assign(std::size_t{states} * out_.classes_, kDead);
    for (std::uint32_t r = 0; r < rules(); ++r)
      for (StateId s = 0; s < dfas_[r].size(); ++s) add_state(dfas_[r], s, base[r]);
    out_.action_at_.push_back(static_cast<std::uint32_t>(out_.actions_.size()));
    for (std::uint32_t r = 0; r < rules(); ++r) VT_RETURN_IF_ERROR(find_keys(dfas_[r], base[r]));
    return Ok{};
  }

  // The quotation mark is in a class of its own: it ends counted strings.
  void join_classes() {
    std::map<std::vector<std::uint8_t>, std::uint8_t> ids;
    for (int b = 0; b < 256; ++b) {
      std::vector<std::uint8_t> key{b == '"'};
      for (const Dfa& dfa : dfas_) key.push_back(dfa.class_of[b]);
      auto [it, added] = ids.try_emplace(std::move(key), static_cast<std::uint8_t>(ids.size()));
      out_.class_of_[b] = it->second;
    }
    out_.classes_ = static_cast<std::uint32_t>(ids.size());
  }

  void add_state(const Dfa& dfa, StateId s, StateId base) {
    constexpr int kManyBytes = 16;
    const StateId id = base + s;
    int bytes = 0;
    for (int b = 0; b < 256; ++b) {
      const StateId t = dfa.step(s, static_cast<std::uint8_t>(b));
      if (t == kDead) continue;
      out_.next_[std::size_t{id} * out_.classes_ + out_.class_of_[b]] = base + t;
      ++bytes;
    }
    std::uint8_t flags = 0;
    std::uint32_t extra = 0;
    if (bytes > 0) flags |= Machine::kBytes;
    if (bytes >= kManyBytes) flags |= Machine::kWide;
    if (dfa.label[s] != 0) flags |= Machine::kReturn;
    out_.action_at_.push_back(static_cast<std::uint32_t>(out_.actions_.size()));
    for_each_letter(dfa, s, [&](const LetterEdge& e) {
      auto [op, arg] = meaning(e);
      if (op == Op::kCounted) {
        flags |= Machine::kCounted, extra = arg;
        return;
      }
      flags |= Machine::kActions;
      out_.actions_.push_back({op, op == Op::kCall && is_tail(dfa, e.to, arg), arg, base + e.to});
    });
    out_.flags_.push_back(flags);
    out_.extra_.push_back(extra);
  }

  bool is_tail(const Dfa& dfa, StateId after, std::uint32_t callee) const {
    if (dfa.label[after] == 0 || program_.rules[callee].container) return false;
    for (std::uint32_t c = 0; c < dfa.classes; ++c)
      if (dfa.next[after * dfa.classes + c] != kDead) return false;
    return dfa.letters.empty() || dfa.letters[after].empty();
  }

  // Which labels can follow, for the states inside keys: backwards from the ends of keys.
  Status find_keys(const Dfa& dfa, StateId base) {
    std::vector<std::vector<std::uint64_t>> rows(dfa.size());
    std::deque<StateId> work;  // breadth first
    std::vector<bool> waits(dfa.size(), false);
    auto add = [&](StateId s, std::size_t word, std::uint64_t bits) {
      if (rows[s].size() <= word) rows[s].resize(word + 1);
      if ((bits & ~rows[s][word]) != 0 && !waits[s]) waits[s] = true, work.push_back(s);
      rows[s][word] |= bits;
    };
    for (StateId s = 0; s < dfa.size(); ++s)
      for_each_letter(dfa, s, [&](const LetterEdge& e) {
        auto [op, arg] = meaning(e);
        if (op == Op::kKey) add(s, arg / 64, std::uint64_t{1} << arg % 64);
      });
    if (work.empty()) return Ok{};
    std::vector<std::vector<StateId>> sources(dfa.size());
    for (StateId s = 0; s < dfa.size(); ++s)
      for (std::uint32_t c = 0; c < dfa.classes; ++c)
        if (StateId t = dfa.next[s * dfa.classes + c];
            t != kDead && (sources[t].empty() || sources[t].back() != s))
          sources[t].push_back(s);
    while (!work.empty()) {
      const StateId s = work.front();
      work.pop_front();
      waits[s] = false;
      const std::vector<std::uint64_t> row = rows[s];
      for (StateId t : sources[s]) {
        if (!budget_.spend(1 + row.size() / 4)) return budget_.exhausted();
        for (std::size_t w = 0; w < row.size(); ++w)
          if (row[w] != 0) add(t, w, row[w]);
      }
    }
    std::map<std::vector<std::uint64_t>, std::uint32_t> ids;
    for (StateId s = 0; s < dfa.size(); ++s) {
      if (rows[s].empty()) continue;
      auto [it, added] = ids.try_emplace(rows[s], out_.reach_.size());
      if (added) out_.reach_.push_back(rows[s]);
      out_.flags_[base + s] |= Machine::kKey;
      out_.extra_[base + s] = it->second;
    }
    return Ok{};
  }

  const Program& program_;
  std::string_view what_;
  Budget& budget_;
  std::vector<Dfa> dfas_;
  std::vector<bool> nullable_;
  Machine out_;
};

Result<Machine> link(const Program& program, std::string_view what, Budget& budget) {
  return Linker(program, what, budget).run();
}

}  // namespace vitrine::grammar
