#include "grammar/regex.h"

#include "base/utf8.h"
#include "grammar/expr.h"
#include "grammar/reader.h"

namespace vitrine::grammar {
namespace {

CodeSet shorthand(char kind) {
  CodeSet set;
  switch (kind | 0x20) {
    case 'd':
      set.add('0', '9');
      break;
    case 'w':
      set.add('0', '9'), set.add('A', 'Z'), set.add('a', 'z'), set.add('_');
      break;
    default:  // 's': white space and line ends of ECMAScript
      set.add(9, 13), set.add(' '), set.add(0xA0), set.add(0x1680), set.add(0x2000, 0x200A);
      set.add(0x2028, 0x2029), set.add(0x202F), set.add(0x205F), set.add(0x3000), set.add(0xFEFF);
  }
  set.normalize();
  return kind >= 'a' ? set : set.complement();
}

class Parser {
 public:
  Parser(std::string_view pattern, std::string_view what) : in_(pattern, what) {}

  Result<ExprId> run() {
    VT_TRY(ExprId whole, choice(0));
    if (!in_.done()) return in_.error("found ) without (");
    return whole;
  }
  const Exprs& exprs() const { return exprs_; }
  Exprs& exprs() { return exprs_; }

 private:
  Error refuse(std::string_view what) const {
    return in_.error(fmt::format("{} cannot be enforced", what), ErrorCode::kUnsupported);
  }

  Result<ExprId> choice(int depth) {
    if (depth > kMaxExprDepth)
      return in_.error(fmt::format("groups are nested deeper than {}", kMaxExprDepth),
                       ErrorCode::kTooLarge);
    std::vector<ExprId> parts;
    do {
      VT_TRY(ExprId part, sequence(depth));
      parts.push_back(part);
    } while (in_.take("|"));
    return exprs_.choice(std::move(parts));
  }

  Result<ExprId> sequence(int depth) {
    std::vector<ExprId> parts;
    while (!in_.done() && in_.peek() != '|' && in_.peek() != ')') {
      VT_TRY(ExprId part, atom(depth));
      VT_TRY(part, quantified(part));
      parts.push_back(part);
    }
    return exprs_.sequence(std::move(parts));
  }

  Result<ExprId> atom(int depth) {
    if (in_.take("^")) return exprs_.add({.kind = Expr::Kind::kBegin});
    if (in_.take("$")) return exprs_.add({.kind = Expr::Kind::kEnd});
    if (in_.take("(")) return group(depth);
    if (in_.take("[")) return char_class();
    if (in_.take(".")) {
      CodeSet ends;
      ends.add('\n'), ends.add('\r'), ends.add(0x2028, 0x2029);
      ends.normalize();
      return exprs_.chars(ends.complement());
    }
    if (in_.peek() == '*' || in_.peek() == '+' || in_.peek() == '?')
      return in_.error(fmt::format("found {} with nothing to repeat", in_.peek()));
    CodeSet set;
    VT_RETURN_IF_ERROR(in_.take("\\") ? escape(set, false) : plain(set));
    return exprs_.chars(std::move(set));
  }

  Status plain(CodeSet& set) {
    set.add(in_.character());
    set.normalize();
    return Ok{};
  }

  Result<ExprId> group(int depth) {
    if (in_.looking_at("?=") || in_.looking_at("?!") || in_.looking_at("?<=") ||
        in_.looking_at("?<!"))
      return refuse("lookaround");
    if (in_.take("?<")) {
      while (!in_.done() && in_.peek() != '>') in_.character();
      if (!in_.take(">")) return in_.error("the name of a group has no end");
    } else if (in_.looking_at("?") && !in_.take("?:")) {
      return refuse(fmt::format("a group that begins with (?{}", in_.peek(1)));
    }
    VT_TRY(ExprId inner, choice(depth + 1));
    if (!in_.take(")")) return in_.error("found ( without )");
    return inner;
  }

  Result<ExprId> quantified(ExprId part) {
    std::uint64_t min = 0, max = kUnbounded;
    const std::size_t start = in_.at();
    if (in_.take("+")) {
      min = 1;
    } else if (in_.take("?")) {
      max = 1;
    } else if (in_.take("{")) {
      auto first = in_.number();
      if (!first) {  // a brace that is no quantifier stands for itself
        in_.seek(start);
        return part;
      }
      min = max = *first;
      if (in_.take(",")) max = in_.number().value_or(kUnbounded);
      if (!in_.take("}")) return in_.error("a repetition {m,n} has no end");
      if (min > max) return in_.error("a repetition {m,n} has m above n");
    } else if (!in_.take("*")) {
      return part;
    }
    in_.take("?");
    const char next = in_.peek();
    if (next == '*' || next == '+' || next == '?')
      return in_.error("found two quantifiers in a row");
    return exprs_.repeat(part, min, max);
  }

  // After the backslash.
  Status escape(CodeSet& set, bool in_class) {
    if (in_.done()) return in_.error("found \\ at the end");
    const char c = in_.peek();
    if (c == 'b' && in_class) {
      in_.take("b");
      set.add(8);
    } else if (c == 'b' || c == 'B') {
      return refuse("a word boundary");
    } else if (c == 'p' || c == 'P') {
      return refuse(fmt::format("\\{}{{..}}", c));
    } else if ((c >= '1' && c <= '9') || c == 'k') {
      return refuse("a backreference");
    } else if (std::string_view("dDwWsS").find(c) != std::string_view::npos) {
      set.add(shorthand(c));
      in_.character();
    } else {
      VT_TRY(char32_t code, escaped_character());
      set.add(code);
    }
    set.normalize();
    return Ok{};
  }

  Result<char32_t> escaped_character() {
    const char32_t c = in_.character();
    constexpr std::string_view kNames = "ntrfv0", kCodes{"\n\t\r\f\v\0", 6};
    if (c < 128)
      if (auto i = kNames.find(static_cast<char>(c)); i != std::string_view::npos)
        return static_cast<char32_t>(kCodes[i]);
    if (c == 'x' || c == 'u') return hex_escape(c == 'x' ? 2 : 4);
    if (c == 'c') {
      const char32_t letter = in_.done() ? 0 : in_.character();
      if ((letter | 0x20) < 'a' || (letter | 0x20) > 'z') return in_.error("\\c needs a letter");
      return letter & 31;
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
      return in_.error(fmt::format("\\{} is not an escape", static_cast<char>(c)));
    return c;
  }

  Result<char32_t> hex_escape(int digits) {
    if (digits == 4 && in_.take("{")) {
      char32_t code = 0;
      while (auto digit = in_.hex(1)) code = std::min<char32_t>(code * 16 + *digit, 0x110000);
      if (!in_.take("}") || code > 0x10FFFF) return in_.error("\\u{..} is not a character");
      return code;
    }
    auto code = in_.hex(digits);
    if (!code) return in_.error(fmt::format("needs {} hexadecimal digits", digits));
    if (*code < 0xD800 || *code > 0xDFFF) return *code;
    const std::size_t at = in_.at();
    if (*code < 0xDC00 && in_.take("\\u"))
      if (auto low = in_.hex(4); low && *low >= 0xDC00 && *low <= 0xDFFF)
        return 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
    in_.seek(at);
    return in_.error("half of a surrogate pair is not a character");
  }

  Result<ExprId> char_class() {
    const bool negated = in_.take("^");
    CodeSet set;
    while (!in_.take("]")) {
      CodeSet first;
      VT_RETURN_IF_ERROR(class_item(first));
      const bool single =
          first.ranges().size() == 1 && first.ranges()[0].first == first.ranges()[0].last;
      if (single && in_.peek() == '-' && in_.peek(1) != ']') {
        in_.take("-");
        CodeSet last;
        VT_RETURN_IF_ERROR(class_item(last));
        if (last.ranges().size() != 1 || last.ranges()[0].first < first.ranges()[0].first)
          return in_.error("a range of a class must go upwards");
        first.add(first.ranges()[0].first, last.ranges()[0].last);
      }
      set.add(first);
    }
    set.normalize();
    return exprs_.chars(negated ? set.complement() : set);
  }

  Status class_item(CodeSet& set) {
    if (in_.done()) return in_.error("found [ without ]");
    return in_.take("\\") ? escape(set, true) : plain(set);
  }

  Reader in_;
  Exprs exprs_;
};

}  // namespace

Result<Dfa> regex_to_dfa(std::string_view pattern, Anchoring anchoring, std::string_view what,
                         Budget& budget) {
  if (pattern.size() > kMaxPatternBytes)
    return make_error(ErrorCode::kTooLarge, "{}: found a pattern of {} bytes, allowed up to {}",
                      what, pattern.size(), kMaxPatternBytes);
  if (!utf8_valid(pattern))
    return make_error(ErrorCode::kMalformed, "{}: the pattern is not UTF-8", what);
  Parser parser(pattern, what);
  VT_TRY(ExprId whole, parser.run());
  Nfa nfa;
  StateId start = nfa.add(), first = nfa.add(), last = nfa.add(), final = nfa.add();
  nfa.epsilon(start, first);
  nfa.epsilon(last, final);
  if (anchoring == Anchoring::kSearch) {
    nfa.chars(start, start, CodeSet::any());
    nfa.chars(final, final, CodeSet::any());
  }
  VT_RETURN_IF_ERROR(ExprWriter(parser.exprs(), nfa, budget).write(whole, first, last));
  return nfa.determinize(start, final, budget);
}

}  // namespace vitrine::grammar
