#include "grammar/gbnf.h"

#include <map>

#include "base/utf8.h"
#include "grammar/reader.h"

namespace vitrine::grammar {
namespace {

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view what) : in_(text, what), what_(what) {}

  Result<RuleSet> run() {
    skip(true);
    while (!in_.done()) VT_RETURN_IF_ERROR(rule());
    for (const RuleSet::Rule& r : out_.rules)
      if (!r.defined)
        return make_error(ErrorCode::kMalformed, "{}: rule \"{}\" is used and not defined", what_,
                          shortened(r.name));
    auto root = numbers_.find("root");
    if (root == numbers_.end())
      return make_error(ErrorCode::kMalformed, "{}: there is no rule \"root\"", what_);
    out_.root = root->second;
    return std::move(out_);
  }

 private:
  // Blanks and comments; line ends too where they mean nothing.
  void skip(bool lines) {
    while (!in_.done()) {
      const char c = in_.peek();
      if (c == '#')
        in_.take_while([](char x) { return x != '\n'; });
      else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))
        in_.seek(in_.at() + 1);
      else
        return;
    }
  }

  Result<std::uint32_t> number_of(std::string_view name) {
    auto [it, added] = numbers_.try_emplace(std::string(name), out_.rules.size());
    if (added) out_.rules.push_back({std::string(name)});
    if (out_.rules.size() > kMaxRules)
      return in_.error(fmt::format("there are more than {} rules", kMaxRules),
                       ErrorCode::kTooLarge);
    return it->second;
  }

  Status rule() {
    std::string_view name = in_.take_while(is_name);
    if (name.empty()) return in_.error("expected the name of a rule");
    VT_TRY(std::uint32_t number, number_of(name));
    if (out_.rules[number].defined)
      return in_.error(fmt::format("rule \"{}\" is defined twice", shortened(name)));
    out_.rules[number].defined = true;
    skip(false);
    if (!in_.take("::="))
      return in_.error(fmt::format("expected ::= after \"{}\"", shortened(name)));
    skip(true);
    VT_TRY(out_.rules[number].expr, choice(0));
    if (!in_.done() && in_.peek() != '\n' && in_.peek() != '\r')
      return in_.error(fmt::format("found {} in a rule", printable(in_.peek())));
    skip(true);
    return Ok{};
  }

  static std::string printable(char c) {
    return c >= ' ' && c < 127 ? fmt::format("'{}'", c)
                               : fmt::format("byte {:#04x}", static_cast<unsigned char>(c));
  }

  Result<ExprId> choice(int depth) {
    if (depth > kMaxExprDepth)
      return in_.error(fmt::format("parentheses are nested deeper than {}", kMaxExprDepth),
                       ErrorCode::kTooLarge);
    std::vector<ExprId> parts;
    while (true) {
      VT_TRY(ExprId part, sequence(depth));
      parts.push_back(part);
      // A line may begin with | to go on.
      const std::size_t here = in_.at();
      skip(true);
      if (!in_.take("|")) {
        if (depth == 0) in_.seek(here);
        return out_.exprs.choice(std::move(parts));
      }
      skip(true);
    }
  }

  Result<ExprId> sequence(int depth) {
    std::vector<ExprId> parts;
    while (true) {
      skip(depth > 0);
      const char c = in_.peek();
      if (in_.done() || c == '|' || c == ')' || c == '\n' || c == '\r') break;
      VT_TRY(ExprId part, atom(depth));
      VT_TRY(part, quantified(part));
      parts.push_back(part);
    }
    return out_.exprs.sequence(std::move(parts));
  }

  Result<ExprId> atom(int depth) {
    if (in_.take("\"")) return literal();
    if (in_.take("[")) return char_class();
    if (in_.take(".")) return out_.exprs.chars(CodeSet::any());
    if (in_.take("(")) {
      VT_TRY(ExprId inner, choice(depth + 1));
      if (!in_.take(")")) return in_.error("found ( without )");
      return inner;
    }
    std::string_view name = in_.take_while(is_name);
    if (name.empty()) return in_.error(fmt::format("found {}", printable(in_.peek())));
    VT_TRY(std::uint32_t number, number_of(name));
    return out_.exprs.rule(number);
  }

  Result<ExprId> quantified(ExprId part) {
    for (int i = 0;; ++i) {
      if (i > kMaxQuantifiers) return in_.error("there are too many quantifiers in a row");
      std::uint64_t min = 0, max = kUnbounded;
      if (in_.take("+")) {
        min = 1;
      } else if (in_.take("?")) {
        max = 1;
      } else if (in_.take("{")) {
        auto first = in_.number();
        if (!first) return in_.error("a repetition {m,n} needs a number");
        min = max = *first;
        if (in_.take(",")) max = in_.number().value_or(kUnbounded);
        if (!in_.take("}")) return in_.error("a repetition {m,n} has no end");
        if (min > max) return in_.error("a repetition {m,n} has m above n");
      } else if (!in_.take("*")) {
        return part;
      }
      part = out_.exprs.repeat(part, min, max);
    }
  }

  Result<char32_t> character(std::string_view place) {
    if (in_.done()) return in_.error(fmt::format("{} has no end", place));
    if (!in_.take("\\")) return in_.character();
    if (in_.done()) return in_.error(fmt::format("{} has no end", place));
    const char32_t c = in_.character();
    switch (c) {
      case 'n':
        return U'\n';
      case 't':
        return U'\t';
      case 'r':
        return U'\r';
      case 'x':
      case 'u':
      case 'U': {
        auto code = in_.hex(c == 'x' ? 2 : c == 'u' ? 4 : 8);
        if (!code || *code > 0x10FFFF || (*code >= 0xD800 && *code <= 0xDFFF))
          return in_.error("the digits of an escape are not those of a character");
        return *code;
      }
      case '"':
      case '\\':
      case '[':
      case ']':
      case '-':
      case '^':
      case '/':
        return c;
      default:
        return in_.error("unknown escape");
    }
  }

  Result<ExprId> literal() {
    std::string text;
    while (!in_.take("\"")) {
      if (in_.peek() == '\n') return in_.error("a string has no end");
      VT_TRY(char32_t c, character("a string"));
      utf8_append(text, c);
    }
    return out_.exprs.text(std::move(text));
  }

  Result<ExprId> char_class() {
    const bool negated = in_.take("^");
    CodeSet set;
    while (!in_.take("]")) {
      VT_TRY(char32_t first, character("a class"));
      char32_t last = first;
      if (in_.peek() == '-' && in_.peek(1) != ']') {
        in_.take("-");
        VT_TRY(last, character("a class"));
        if (last < first) return in_.error("a range of a class must go upwards");
      }
      set.add(first, last);
    }
    set.normalize();
    return out_.exprs.chars(negated ? set.complement() : set);
  }

  static constexpr int kMaxQuantifiers = 4;

  Reader in_;
  std::string_view what_;
  RuleSet out_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
};

}  // namespace

Result<RuleSet> parse_gbnf(std::string_view text, std::string_view what) {
  if (text.size() > kMaxGrammarBytes)
    return make_error(ErrorCode::kTooLarge, "{}: found a grammar of {} bytes, allowed up to {}",
                      what, text.size(), kMaxGrammarBytes);
  if (!utf8_valid(text)) return make_error(ErrorCode::kMalformed, "{}: not UTF-8", what);
  return Parser(text, what).run();
}

}  // namespace vitrine::grammar
