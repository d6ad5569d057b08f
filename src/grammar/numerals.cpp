#include "grammar/numerals.h"

#include <charconv>

#include "base/utf8.h"
#include "grammar/regex.h"

namespace vitrine::grammar {
namespace {

Result<Dfa> spelled(std::string_view pattern, Budget& budget) {
  return regex_to_dfa(pattern, Anchoring::kWhole, "number", budget);
}

constexpr std::uint8_t kNine = '9';

// Writes digit strings compared with a given one.
class Comparison {
 public:
  Comparison(Nfa& nfa, const Decimal& bound) : nfa_(nfa), bound_(bound) {}

  void write(StateId from, StateId to, bool below, bool at, bool above) {
    StateId equal = nfa_.add(), decided = nfa_.add(), fraction = nfa_.add();
    nfa_.text(from, equal, bound_.whole);
    if (below) shorter(from, decided);
    if (above) longer(from, decided);
    const std::string& b = bound_.whole;
    for (std::size_t i = 0; i < b.size(); ++i) {
      StateId next = nfa_.add();
      nfa_.text(from, next, b.substr(0, i));
      const char least = i == 0 && b.size() > 1 ? '1' : '0';
      if (below && b[i] > least) digits(next, decided, least, b[i] - 1, b.size() - i - 1);
      if (above && b[i] < '9') digits(next, decided, b[i] + 1, kNine, b.size() - i - 1);
    }
    // The whole part decides: any fraction.
    nfa_.epsilon(decided, to);
    nfa_.text(decided, fraction, ".");
    some_digits(fraction, to);
    fractions(equal, to, below, at, above);
  }

 private:
  void digits(StateId from, StateId to, int first, int last, std::size_t then) {
    for (std::size_t i = 0; i < then; ++i) {
      StateId next = nfa_.add();
      nfa_.bytes(from, next, static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last));
      from = next, first = '0', last = kNine;
    }
    nfa_.bytes(from, to, static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last));
  }
  void some_digits(StateId from, StateId to) {
    StateId loop = nfa_.add();
    nfa_.bytes(from, loop, '0', kNine);
    nfa_.bytes(loop, loop, '0', kNine);
    nfa_.epsilon(loop, to);
  }
  void any_digits(StateId from, StateId to) {
    nfa_.epsilon(from, to);
    some_digits(from, to);
  }
  void shorter(StateId from, StateId to) {
    if (bound_.whole.size() < 2) return;
    nfa_.text(from, to, "0");
    for (std::size_t n = 1; n < bound_.whole.size(); ++n) digits(from, to, '1', kNine, n - 1);
  }
  void longer(StateId from, StateId to) {
    StateId loop = nfa_.add();
    digits(from, loop, '1', kNine, bound_.whole.size());
    nfa_.bytes(loop, loop, '0', kNine);
    nfa_.epsilon(loop, to);
  }
  // After equal whole parts.
  void fractions(StateId from, StateId to, bool below, bool at, bool above) {
    const std::string& f = bound_.fraction;
    StateId point = nfa_.add();
    nfa_.text(from, point, ".");
    if (f.empty() ? at : below) nfa_.epsilon(from, to);
    StateId here = point;
    for (std::size_t i = 0; i < f.size(); ++i) {
      StateId decided = nfa_.add(), next = nfa_.add();
      any_digits(decided, to);
      if (below && i > 0) nfa_.epsilon(here, to);
      if (below && f[i] > '0') digits(here, decided, '0', f[i] - 1, 0);
      if (above && f[i] < '9') digits(here, decided, f[i] + 1, kNine, 0);
      nfa_.text(here, next, f.substr(i, 1));
      here = next;
    }
    // All digits of the bound have come; what follows is zeros, or makes it more.
    StateId zeros = nfa_.add(), more = nfa_.add();
    if (at && !f.empty()) nfa_.epsilon(here, to);
    nfa_.text(here, zeros, "0");
    nfa_.text(zeros, zeros, "0");
    if (at) nfa_.epsilon(zeros, to);
    if (!above) return;
    nfa_.bytes(here, more, '1', kNine);
    nfa_.bytes(zeros, more, '1', kNine);
    any_digits(more, to);
  }

  Nfa& nfa_;
  const Decimal& bound_;
};

}  // namespace

Result<Decimal> to_decimal(const json::value& number) {
  constexpr int kMost = 400;
  std::string text = number.is_int64()    ? fmt::format("{}", number.get_int64())
                     : number.is_uint64() ? fmt::format("{}", number.get_uint64())
                                          : fmt::format("{}", number.get_double());
  Decimal out;
  std::string_view rest = text;
  if (rest.starts_with('-')) out.negative = true, rest.remove_prefix(1);
  int exponent = 0;
  if (auto e = rest.find('e'); e != std::string_view::npos) {
    std::string_view digits = rest.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    rest = rest.substr(0, e);
  }
  if (exponent > kMost || exponent < -kMost)
    return make_error(ErrorCode::kTooLarge, "found {}, allowed up to {} digits", text, kMost);
  const auto point = rest.find('.');
  std::string digits(rest.substr(0, point));
  std::string after = point == std::string_view::npos ? "" : std::string(rest.substr(point + 1));
  for (; exponent > 0; --exponent) {
    digits += after.empty() ? '0' : after[0];
    if (!after.empty()) after.erase(0, 1);
  }
  for (; exponent < 0; ++exponent) {
    after.insert(after.begin(), digits.empty() ? '0' : digits.back());
    if (!digits.empty()) digits.pop_back();
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  after.erase(after.find_last_not_of('0') + 1);
  out.whole = digits.empty() ? "0" : digits;
  out.fraction = after;
  return out;
}

Result<Dfa> all_numerals(Budget& budget) { return spelled(R"(-?(0|[1-9]\d*)(\.\d+)?)", budget); }
Result<Dfa> bounded_numerals(Budget& budget) {
  return spelled(fmt::format(R"(-?(0|[1-9]\d{{0,{}}})(\.\d{{1,{}}})?)", kMaxWholeDigits - 1,
                             kMaxFractionDigits),
                 budget);
}
Result<Dfa> whole_numerals(Budget& budget) { return spelled(R"(-?(0|[1-9]\d*)(\.0+)?)", budget); }
Result<Dfa> plain_whole(Budget& budget) { return spelled(R"(0|-?[1-9]\d*)", budget); }

Result<Dfa> compared(const Decimal& bound, bool below, bool at, bool above, Budget& budget) {
  Nfa nfa;
  StateId start = nfa.add(), minus = nfa.add(), final = nfa.add();
  nfa.text(start, minus, "-");
  const Decimal zero;
  auto sign = [&](StateId from, bool negative) {
    if (bound.is_zero() || bound.negative == negative) {
      // Of negative numbers the one with the larger digits is the smaller one.
      if (negative)
        Comparison(nfa, bound).write(from, final, above, at, below);
      else
        Comparison(nfa, bound).write(from, final, below, at, above);
    } else if (negative ? below : above) {
      Comparison(nfa, zero).write(from, final, false, true, true);
    }
  };
  sign(start, false);
  sign(minus, true);
  return nfa.determinize(start, final, budget);
}

Result<Dfa> multiples(const Decimal& of, Budget& budget) {
  constexpr std::uint64_t kMostStates = 20000;
  std::string digits = of.whole + of.fraction;
  std::uint64_t m = 0;
  for (char c : digits) {
    m = m * 10 + static_cast<std::uint64_t>(c - '0');
    if (m > kMostStates) break;
  }
  const std::uint64_t scale = of.fraction.size();
  if (m == 0 || m * (scale + 2) > kMostStates)
    return make_error(ErrorCode::kTooLarge,
                      "multiples of {} need too large an automaton; allowed are up to {} steps",
                      shortened(of.whole + (of.fraction.empty() ? "" : ".") + of.fraction),
                      kMostStates);
  // State (place, remainder): place 0 is the whole part, then one per digit of the fraction; past
  // the digits of the divisor only zeros may follow.
  Nfa nfa;
  StateId start = nfa.add(), final = nfa.add(), first = nfa.add(), base = nfa.size();
  for (std::uint64_t i = 0; i < (scale + 1) * m; ++i) nfa.add();
  StateId zero = nfa.add(), zeros = nfa.add();
  auto state = [&](std::uint64_t place, std::uint64_t r) {
    return base + static_cast<StateId>(place * m + r);
  };
  nfa.epsilon(start, first);
  nfa.text(start, first, "-");
  nfa.text(first, zero, "0");
  auto digit = [&](StateId from, StateId to, std::uint64_t d) {
    nfa.bytes(from, to, static_cast<std::uint8_t>('0' + d), static_cast<std::uint8_t>('0' + d));
  };
  std::vector<StateId> points;  // after the point, by remainder
  for (std::uint64_t r = 0; r < m; ++r) points.push_back(nfa.add());
  for (std::uint64_t d = 1; d < 10; ++d) digit(first, state(0, d % m), d);
  nfa.epsilon(zero, final);
  nfa.text(zero, points[0], ".");
  for (std::uint64_t r = 0; r < m; ++r) {
    nfa.text(state(0, r), points[r], ".");
    for (std::uint64_t d = 0; d < 10; ++d) {
      digit(state(0, r), state(0, (r * 10 + d) % m), d);
      if (scale > 0) digit(points[r], state(1, (r * 10 + d) % m), d);
      for (std::uint64_t place = 1; place < scale; ++place)
        digit(state(place, r), state(place + 1, (r * 10 + d) % m), d);
    }
    if (scale == 0 && r == 0) digit(points[r], zeros, 0);
    for (std::uint64_t place = 0; place <= scale; ++place) {
      std::uint64_t rest = r;
      for (std::uint64_t i = place; i < scale; ++i) rest = rest * 10 % m;
      if (rest == 0) nfa.epsilon(state(place, r), final);
    }
  }
  if (scale > 0) digit(state(scale, 0), zeros, 0);
  digit(zeros, zeros, 0);
  nfa.epsilon(zeros, final);
  return nfa.determinize(start, final, budget);
}

void write_number(Nfa& nfa, StateId from, StateId to) {
  auto digits = [&](StateId at, int first, int most) {
    for (int i = 0; i < most; ++i) {
      StateId next = nfa.add();
      nfa.bytes(at, next, static_cast<std::uint8_t>(i == 0 ? first : '0'), kNine);
      nfa.epsilon(next, to);
      at = next;
    }
    return at;
  };
  StateId signless = nfa.add(), whole = nfa.add(), point = nfa.add(), exponent = nfa.add();
  nfa.epsilon(from, signless);
  nfa.text(from, signless, "-");
  nfa.text(signless, whole, "0");
  nfa.epsilon(whole, to);
  // Each number of digits may be followed by a point or an exponent.
  StateId at = signless;
  for (int i = 0; i < kMaxWholeDigits; ++i) {
    StateId next = nfa.add();
    nfa.bytes(at, next, i == 0 ? '1' : '0', kNine);
    nfa.epsilon(next, whole);
    at = next;
  }
  nfa.text(whole, point, ".");
  nfa.text(whole, exponent, "e");
  nfa.text(whole, exponent, "E");
  at = point;
  for (int i = 0; i < kMaxFractionDigits; ++i) {
    StateId next = nfa.add();
    nfa.bytes(at, next, '0', kNine);
    nfa.epsilon(next, to);
    nfa.text(next, exponent, "e");
    nfa.text(next, exponent, "E");
    at = next;
  }
  StateId power = nfa.add();
  nfa.epsilon(exponent, power);
  nfa.text(exponent, power, "+");
  nfa.text(exponent, power, "-");
  digits(power, '0', 2);
}

}  // namespace vitrine::grammar
