#include "grammar/json_text.h"

#include <map>

#include "grammar/expr.h"

namespace vitrine::grammar {
namespace {

void hex_digits(Nfa& nfa, StateId from, StateId to, int count) {
  for (int i = 0; i < count; ++i) {
    StateId next = i + 1 == count ? to : nfa.add();
    nfa.bytes(from, next, '0', '9');
    nfa.bytes(from, next, 'a', 'f');
    nfa.bytes(from, next, 'A', 'F');
    from = next;
  }
}

void either_case(Nfa& nfa, StateId from, StateId to, char first, char last) {
  nfa.bytes(from, to, static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last));
  nfa.bytes(from, to, static_cast<std::uint8_t>(first - 32), static_cast<std::uint8_t>(last - 32));
}

// After \u: four digits, a surrogate followed by its other half.
void unicode_escape(Nfa& nfa, StateId from, StateId to) {
  StateId rest = nfa.add(), d = nfa.add(), high = nfa.add(), low = nfa.add();
  nfa.bytes(from, rest, '0', '9');
  either_case(nfa, from, rest, 'a', 'c');
  either_case(nfa, from, rest, 'e', 'f');
  hex_digits(nfa, rest, to, 3);
  either_case(nfa, from, d, 'd', 'd');
  StateId d07 = nfa.add();
  nfa.bytes(d, d07, '0', '7');
  hex_digits(nfa, d07, to, 2);
  nfa.bytes(d, high, '8', '9');
  either_case(nfa, d, high, 'a', 'b');
  StateId second = nfa.add(), dc = nfa.add();
  hex_digits(nfa, high, second, 2);
  nfa.text(second, low, "\\u");
  either_case(nfa, low, dc, 'd', 'd');
  StateId tail = nfa.add();
  either_case(nfa, dc, tail, 'c', 'f');
  hex_digits(nfa, tail, to, 2);
}

CodeSet unescaped() {
  CodeSet set;
  set.add(0x20, 0x21), set.add(0x23, 0x5B), set.add(0x5D, 0x10FFFF);
  set.normalize();
  return set;
}

// The short escape of a byte that cannot stand in a string; '\0': there is none.
char short_escape(std::uint8_t byte) {
  switch (byte) {
    case '"':
      return '"';
    case '\\':
      return '\\';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    default:
      return '\0';
  }
}

}  // namespace

void write_blank(Nfa& nfa, StateId from, StateId to) {
  constexpr int kIndent = 24, kTabs = 8;
  nfa.epsilon(from, to);
  nfa.text(from, to, " ");
  StateId line = nfa.add();
  nfa.text(from, line, "\n");
  nfa.epsilon(line, to);
  for (auto [blank, most] : {std::pair{" ", kIndent}, std::pair{"\t", kTabs}}) {
    StateId at = line;
    for (int i = 0; i < most; ++i) {
      StateId next = nfa.add();
      nfa.text(at, next, blank);
      nfa.epsilon(next, to);
      at = next;
    }
  }
}

void write_string_char(Nfa& nfa, StateId from, StateId to) {
  nfa.chars(from, to, unescaped());
  StateId escape = nfa.add(), unicode = nfa.add();
  nfa.text(from, escape, "\\");
  for (char c : std::string_view("\"\\/bfnrt")) nfa.text(escape, to, std::string_view(&c, 1));
  nfa.text(escape, unicode, "u");
  unicode_escape(nfa, unicode, to);
}

void write_string(Nfa& nfa, StateId from, StateId to) {
  StateId loop = nfa.add();
  nfa.text(from, loop, "\"");
  write_string_char(nfa, loop, loop);
  nfa.text(loop, to, "\"");
}

namespace {

// The characters that lead from one state of the contents to others, as they are spelt. State s of
// the contents is state base + s of the text.
class Spelling {
 public:
  Spelling(Nfa& nfa, const Dfa& dfa, StateId s, StateId base)
      : nfa_(nfa), dfa_(dfa), s_(s), base_(base) {}

  void write() {
    for (int b = 0x20; b < 256;) {
      const StateId t = dfa_.step(s_, static_cast<std::uint8_t>(b));
      int end = b + 1;
      while (end < 256 && end != '"' && end != '\\' && b != '"' && b != '\\' &&
             dfa_.step(s_, static_cast<std::uint8_t>(end)) == t)
        ++end;
      if (t != kDead && b != '"' && b != '\\')
        nfa_.bytes(base_ + s_, base_ + t, static_cast<std::uint8_t>(b),
                   static_cast<std::uint8_t>(end - 1));
      b = end;
    }
    for (int b = 0; b < 256; ++b)
      if (const char c = short_escape(static_cast<std::uint8_t>(b)); c != '\0' && live(b))
        nfa_.text(escape(), base_ + to(b), std::string_view(&c, 1));
    controls();
  }

 private:
  StateId to(int byte) const { return dfa_.step(s_, static_cast<std::uint8_t>(byte)); }
  bool live(int byte) const { return to(byte) != kDead; }
  StateId escape() {
    if (escape_ == kDead) {
      escape_ = nfa_.add();
      nfa_.text(base_ + s_, escape_, "\\");
    }
    return escape_;
  }

  // \u0000 to \u001f; in most places they all lead to the same state.
  void controls() {
    bool same = true, any = false;
    for (int b = 0; b < 0x20; ++b) same = same && to(b) == to(0), any = any || live(b);
    if (!any) return;
    StateId digits = nfa_.add();
    nfa_.text(escape(), digits, "u00");
    if (same) {
      StateId last = nfa_.add();
      nfa_.bytes(digits, last, '0', '1');
      hex_digits(nfa_, last, base_ + to(0), 1);
      return;
    }
    for (int b = 0; b < 0x20; ++b) {
      if (!live(b)) continue;
      for (const char* hex : {"0123456789abcdef", "0123456789ABCDEF"}) {
        const char text[] = {hex[b >> 4], hex[b & 15]};
        nfa_.text(digits, base_ + to(b), std::string_view(text, 2));
        if (b % 16 < 10) break;
      }
    }
  }

  Nfa& nfa_;
  const Dfa& dfa_;
  StateId s_, base_, escape_ = kDead;
};

}  // namespace

void write_string_of(Nfa& nfa, StateId from, const Dfa& dfa,
                     const std::function<void(std::uint32_t, StateId)>& done) {
  if (dfa.empty()) return;
  const StateId base = nfa.size();
  for (StateId s = 0; s < dfa.size(); ++s) nfa.add();
  nfa.text(from, base, "\"");
  std::map<std::uint32_t, StateId> ends;
  for (StateId s = 0; s < dfa.size(); ++s) {
    if (dfa.label[s] != 0) {
      auto [it, added] = ends.try_emplace(dfa.label[s], kDead);
      if (added) it->second = nfa.add();
      nfa.text(base + s, it->second, "\"");
    }
    Spelling(nfa, dfa, s, base).write();
  }
  for (auto [label, state] : ends) done(label, state);
}

Result<Dfa> any_text(Budget& budget) { return text_of_length(0, kUnbounded, budget); }

Result<Dfa> text_of_length(std::uint64_t min, std::uint64_t max, Budget& budget) {
  Exprs exprs;
  ExprId all = exprs.repeat(exprs.chars(CodeSet::any()), min, max);
  Nfa nfa;
  StateId start = nfa.add(), final = nfa.add();
  VT_RETURN_IF_ERROR(ExprWriter(exprs, nfa, budget).write(all, start, final));
  return nfa.determinize(start, final, budget);
}

Result<Dfa> texts(const std::vector<std::string>& all, Budget& budget) {
  Dfa out;
  std::array<bool, 256> used{};
  for (const std::string& text : all)
    for (char c : text) used[static_cast<std::uint8_t>(c)] = true;
  out.classes = 1;  // class 0: bytes of no text
  for (int b = 0; b < 256; ++b)
    out.class_of[b] = used[b] ? static_cast<std::uint8_t>(out.classes++ & 255) : 0;
  if (out.classes > 256) return budget.exhausted();
  auto add = [&] {
    out.next.insert(out.next.end(), out.classes, kDead);
    out.label.push_back(0);
    return out.size() - 1;
  };
  add();
  for (std::size_t i = 0; i < all.size(); ++i) {
    StateId s = 0;
    for (char c : all[i]) {
      const std::size_t at = s * out.classes + out.class_of[static_cast<std::uint8_t>(c)];
      if (out.next[at] == kDead) {
        if (out.size() >= budget.states || !budget.spend(out.classes)) return budget.exhausted();
        const StateId made = add();
        out.next[at] = made;
      }
      s = out.next[at];
    }
    if (out.label[s] == 0) out.label[s] = static_cast<std::uint32_t>(i + 1);
  }
  return out;
}

}  // namespace vitrine::grammar
