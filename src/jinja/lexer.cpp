#include "jinja/lexer.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "jinja/chars.h"

namespace vitrine::jinja {
namespace {

// The tree of a template takes some 400 bytes for each; large templates have 20,000.
constexpr std::size_t kMaxTokens = 250'000;

bool is_name_start(char32_t c) { return c == '_' || is_alpha(c); }
bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

std::string normalized(std::string_view source) {
  std::string out;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), view_(source_) {
    line_starts_.push_back(0);
    for (std::size_t i = 0; i < source_.size(); ++i)
      if (source_[i] == '\n') line_starts_.push_back(i + 1);
  }

  std::vector<Token> run() {
    while (at_ < source_.size()) text();
    push(Token::Type::kEnd, "", source_.size());
    return std::move(out_);
  }

 private:
  bool here(std::string_view what) const { return view_.substr(at_).starts_with(what); }
  Position position(std::size_t at) const {
    auto line = std::upper_bound(line_starts_.begin(), line_starts_.end(), at) - 1;
    return {static_cast<std::uint32_t>(line - line_starts_.begin() + 1),
            static_cast<std::uint32_t>(at - *line + 1)};
  }
  [[noreturn]] void fail_at(std::size_t at, std::string message) const {
    throw SyntaxFailure{std::move(message), position(at)};
  }
  void push(Token::Type type, std::string text, std::size_t at) {
    if (out_.size() >= kMaxTokens)
      fail_at(at, fmt::format("more than {} names, numbers and signs", kMaxTokens));
    out_.push_back({type, std::move(text), position(at)});
  }

  // The first character at or after `at` that is no white space.
  std::size_t skip_space(std::size_t at) const {
    while (at < view_.size()) {
      Utf8Char c = utf8_next(view_.substr(at));
      if (!is_space(c.code)) break;
      at += static_cast<std::size_t>(c.length);
    }
    return at;
  }

  void text();
  void data(std::size_t begin, std::size_t end, char sign, bool variable);
  bool raw(std::size_t tag);
  void comment(std::size_t tag);
  bool end_of_tag(std::string_view end, bool trims);
  void inside(std::string_view end, Token::Type type);
  void word(std::vector<char>& brackets);
  void number();
  void string();
  std::string unescaped(std::string_view text, std::size_t at) const;
  void escape(std::string_view text, std::size_t& i, std::size_t at, std::string& out) const;
  void operation(std::vector<char>& brackets);

  std::string source_;
  std::string_view view_;
  std::size_t at_ = 0;
  bool line_starting_ = true;  // the last thing read ended a line
  std::vector<std::size_t> line_starts_;
  std::vector<Token> out_;
};

// Text up to the next tag, and that tag.
void Lexer::text() {
  std::size_t tag = at_;
  while (true) {
    tag = view_.find('{', tag);
    if (tag == view_.npos || tag + 1 >= view_.size()) {
      push(Token::Type::kData, std::string(view_.substr(at_)), at_);
      at_ = view_.size();
      return;
    }
    char c = view_[tag + 1];
    if (c == '{' || c == '%' || c == '#') break;
    ++tag;
  }
  char sign = tag + 2 < view_.size() ? view_[tag + 2] : '\0';
  bool signed_tag = sign == '-' || sign == '+';
  char kind = view_[tag + 1];
  data(at_, tag, signed_tag ? sign : '\0', kind == '{');
  at_ = tag + 2 + (signed_tag ? 1 : 0);
  line_starting_ = false;
  if (kind == '#') return comment(tag);
  if (kind == '%' && raw(tag)) return;
  push(kind == '{' ? Token::Type::kVariableBegin : Token::Type::kBlockBegin, "", tag);
  if (kind == '{')
    inside("}}", Token::Type::kVariableEnd);
  else
    inside("%}", Token::Type::kBlockEnd);
}

void Lexer::data(std::size_t begin, std::size_t end, char sign, bool variable) {
  std::string_view text = view_.substr(begin, end - begin);
  if (sign == '-') {
    text = text.substr(0, strip(Text(std::string(text)), false, true).size());
  } else if (sign != '+' && !variable) {
    std::size_t line = text.rfind('\n') + 1;
    // Only white space between the line's beginning and the tag.
    if ((line > 0 || line_starting_) && line < text.size() && skip_space(begin + line) >= end)
      text = text.substr(0, line);
  }
  if (!text.empty()) push(Token::Type::kData, std::string(text), begin);
}

// At the inside of a {% that may be {% raw %}.
bool Lexer::raw(std::size_t tag) {
  std::size_t at = skip_space(at_);
  if (!view_.substr(at).starts_with("raw")) return false;
  at = skip_space(at + 3);
  if (view_.substr(at).starts_with("-%}"))
    at = skip_space(at + 3);
  else if (view_.substr(at).starts_with("%}"))
    at += 2;
  else
    return false;
  std::size_t begin = at;
  bool starting = view_[begin - 1] == '\n';
  for (std::size_t end = view_.find("{%", begin); end != view_.npos;
       end = view_.find("{%", end + 2)) {
    at_ = end + 2;
    char sign = at_ < view_.size() ? view_[at_] : '\0';
    if (sign == '-' || sign == '+')
      ++at_;
    else
      sign = '\0';
    at_ = skip_space(at_);
    if (!here("endraw")) continue;
    at_ = skip_space(at_ + 6);
    if (!end_of_tag("%}", true)) continue;
    bool after = std::exchange(line_starting_, starting);
    data(begin, end, sign, false);
    line_starting_ = after;
    return true;
  }
  fail_at(tag, "the raw block has no end");
}

void Lexer::comment(std::size_t tag) {
  for (; at_ < view_.size(); ++at_)
    if (end_of_tag("#}", true)) return;
  fail_at(tag, "the comment has no end");
}

// Reads the end of a tag with its sign, and the white space or line break that goes with it.
bool Lexer::end_of_tag(std::string_view end, bool trims) {
  std::size_t from = at_;
  if (here("-") && view_.substr(at_ + 1).starts_with(end)) {
    at_ = skip_space(at_ + 1 + end.size());
  } else if (trims && here("+") && view_.substr(at_ + 1).starts_with(end)) {
    at_ += 1 + end.size();
  } else if (here(end)) {
    at_ += end.size();
    if (trims && here("\n")) ++at_;
  } else {
    return false;
  }
  line_starting_ = at_ > from && view_[at_ - 1] == '\n';
  return true;
}

void Lexer::inside(std::string_view end, Token::Type type) {
  std::vector<char> brackets;
  while (true) {
    std::size_t begin = at_;
    if (brackets.empty() && end_of_tag(end, type == Token::Type::kBlockEnd)) {
      push(type, "", begin);
      return;
    }
    at_ = skip_space(at_);
    if (at_ >= view_.size()) return;  // the parser says what is missing
    if (at_ == begin) word(brackets);
  }
}

void Lexer::word(std::vector<char>& brackets) {
  char c = view_[at_];
  if (is_ascii_digit(c)) return number();
  if (c == '"' || c == '\'') return string();
  std::size_t begin = at_;
  if (is_name_start(utf8_next(view_.substr(at_)).code)) {
    while (at_ < view_.size()) {
      Utf8Char next = utf8_next(view_.substr(at_));
      if (!is_word(next.code)) break;
      at_ += static_cast<std::size_t>(next.length);
    }
    push(Token::Type::kName, std::string(view_.substr(begin, at_ - begin)), begin);
    return;
  }
  operation(brackets);
}

void Lexer::number() {
  std::size_t begin = at_;
  auto digits = [&](auto&& accepted) {
    while (at_ < view_.size() &&
           (accepted(view_[at_]) ||
            (view_[at_] == '_' && at_ + 1 < view_.size() && accepted(view_[at_ + 1]))))
      ++at_;
  };
  auto digit_at = [&](std::size_t at) { return at < view_.size() && is_ascii_digit(view_[at]); };
  auto text = [&] {
    std::string out(view_.substr(begin, at_ - begin));
    std::erase(out, '_');
    return out;
  };
  char base = at_ + 1 < view_.size() ? static_cast<char>(view_[at_ + 1] | 0x20) : '\0';
  if (view_[at_] == '0' && (base == 'x' || base == 'o' || base == 'b')) {
    at_ += 2;
    digits([](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; });
    return push(Token::Type::kInteger, text(), begin);
  }
  digits(is_ascii_digit);
  bool after_dot = begin > 0 && view_[begin - 1] == '.';  // a.0.1: two subscripts
  bool real = false;
  if (!after_dot && here(".") && digit_at(at_ + 1)) {
    real = true;
    ++at_;
    digits(is_ascii_digit);
  }
  if (!after_dot && at_ < view_.size() && (view_[at_] | 0x20) == 'e') {
    std::size_t sign = at_ + 1 < view_.size() && (view_[at_ + 1] == '+' || view_[at_ + 1] == '-');
    if (digit_at(at_ + 1 + sign)) {
      real = true;
      at_ += 1 + sign;
      digits(is_ascii_digit);
    }
  }
  push(real ? Token::Type::kFloat : Token::Type::kInteger, text(), begin);
}

void Lexer::string() {
  std::size_t begin = at_++;
  char quote = view_[begin];
  while (at_ < view_.size() && view_[at_] != quote) at_ += view_[at_] == '\\' ? 2 : 1;
  if (at_ >= view_.size()) fail_at(begin, "the string has no end");
  push(Token::Type::kString, unescaped(view_.substr(begin + 1, at_ - begin - 1), begin), begin);
  ++at_;
}

std::string Lexer::unescaped(std::string_view text, std::size_t at) const {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size())
      escape(text, i, at, out);
    else
      out += text[i];
  }
  return out;
}

// text[i] is a backslash; leaves `i` at the escape's last byte.
void Lexer::escape(std::string_view text, std::size_t& i, std::size_t at, std::string& out) const {
  constexpr std::string_view kPlain = "\\'\"abfnrtv", kMeaning = "\\'\"\a\b\f\n\r\t\v";
  char c = text[++i];
  if (std::size_t k = kPlain.find(c); k != kPlain.npos) {
    out += kMeaning[k];
  } else if (c == '\n') {
  } else if (c >= '0' && c <= '7') {
    unsigned code = 0;
    std::size_t end = std::min(i + 3, text.size());
    for (; i < end && text[i] >= '0' && text[i] <= '7'; ++i)
      code = code * 8 + static_cast<unsigned>(text[i] - '0');
    --i;
    utf8_append(out, code);
  } else if (c == 'x' || c == 'u' || c == 'U') {
    std::size_t length = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    std::string digits(text.substr(i + 1, length));
    bool hex = std::all_of(digits.begin(), digits.end(),
                           [](unsigned char d) { return std::isxdigit(d) != 0; });
    unsigned long code = hex && digits.size() == length ? std::stoul(digits, nullptr, 16) : ~0ul;
    if (code > 0x10FFFF) fail_at(at, fmt::format("\\{}: not a character", c));
    bool surrogate = code >= 0xD800 && code < 0xE000;
    utf8_append(out, surrogate ? kReplacement : static_cast<char32_t>(code));
    i += length;
  } else {
    (out += '\\') += c;
  }
}

void Lexer::operation(std::vector<char>& brackets) {
  constexpr std::string_view kDouble[] = {"//", "**", "==", "!=", ">=", "<="};
  constexpr std::string_view kSingle = "+-/*%~[](){}><=.:|,;";
  std::size_t begin = at_;
  std::string op(view_.substr(at_, 2));
  if (std::find(std::begin(kDouble), std::end(kDouble), op) == std::end(kDouble)) {
    op.resize(1);
    if (kSingle.find(op[0]) == kSingle.npos) {
      int length = utf8_next(view_.substr(at_)).length;
      fail_at(at_, fmt::format("unexpected character '{}'",
                               view_.substr(at_, static_cast<std::size_t>(length))));
    }
  }
  at_ += op.size();
  if (op == "(" || op == "[" || op == "{") {
    brackets.push_back(op == "(" ? ')' : op == "[" ? ']' : '}');
  } else if (op == ")" || op == "]" || op == "}") {
    if (brackets.empty() || brackets.back() != op[0])
      fail_at(begin, fmt::format("unexpected '{}'", op));
    brackets.pop_back();
  }
  push(Token::Type::kOperator, std::move(op), begin);
}

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(normalized(source)).run(); }

}  // namespace vitrine::jinja
