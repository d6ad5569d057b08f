// Reads a regular expression into the shapes that scanner.cpp matches.
#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/scanner.h"

namespace vitrine {
namespace {

using Arm = Scanner::Arm;
using Item = Scanner::Item;
using Shape = Scanner::Shape;
using Contractions = Scanner::Contractions;

constexpr std::uint32_t kUnbounded = ~0u;
// Longer fixed counts would make a failing attempt expensive.
constexpr std::uint32_t kLargestCount = 16;

struct KnownArm {
  std::string_view text;
  Shape shape;
  Contractions contractions;
};

constexpr KnownArm kKnownArms[] = {
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)", Shape::kContraction, Contractions::kFolded},
    {"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])", Shape::kContraction,
     Contractions::kAnyCase},
    {"'(?i:[sdmt]|ll|ve|re)", Shape::kContraction, Contractions::kFolded},
    {"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])", Shape::kContraction, Contractions::kAnyCase},
    {R"(\s*[\r\n]+)", Shape::kLineEnds, Contractions::kNone},
    {"\\s*[\r\n]+", Shape::kLineEnds, Contractions::kNone},
    {R"(\s*[\r\n])", Shape::kLineEnds, Contractions::kNone},
    {R"(\s+(?!\S))", Shape::kSpacesBefore, Contractions::kNone},
    {R"(\s+$)", Shape::kSpacesAtEnd, Contractions::kNone},
    {R"(\s++$)", Shape::kSpacesToEnd, Contractions::kNone},
};

// Patterns that are one arm as a whole.
constexpr std::string_view kDigitGroupsAtWordEnd = R"(\d{1,3}(?=(?:\d{3})*\b))";
constexpr std::string_view kDigitGroupStarts = R"((?=(\d{3})+(?!\d)))";

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  char peek() const { return rest_.empty() ? '\0' : rest_[0]; }
  bool take(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }
  std::optional<char32_t> take_char() {
    if (rest_.empty()) return std::nullopt;
    Utf8Char c = utf8_next(rest_);
    rest_.remove_prefix(static_cast<std::size_t>(c.length));
    if (!c.valid) return std::nullopt;
    return c.code;
  }
  std::string_view rest() const { return rest_; }

  // An escape after its backslash: a class into `set`, or a single character (returned).
  bool escape(CharSet& set, std::optional<char32_t>& single);
  bool item(Item& item);

 private:
  bool char_class(CharSet& set);
  bool quantifier(Item& item);
  bool number(std::uint32_t& value);
  std::string_view rest_;
};

bool Reader::escape(CharSet& set, std::optional<char32_t>& single) {
  std::optional<char32_t> c = take_char();
  if (!c) return false;
  switch (*c) {
    case 'r':
      single = '\r';
      return true;
    case 'n':
      single = '\n';
      return true;
    case 't':
      single = '\t';
      return true;
    case 's':
      set.add_space();
      return true;
    case 'd':
      set.add_categories(category_mask("Nd"));
      return true;
    case 'w':
      set.add_word();
      return true;
    case 'p':
    case 'P': {
      std::size_t close = rest_.find('}');
      if (peek() != '{' || close == std::string_view::npos) return false;
      CategoryMask mask = category_mask(rest_.substr(1, close - 1));
      if (mask == 0) return false;
      set.add_categories(*c == 'p' ? mask : kAllCategories & ~mask);
      rest_.remove_prefix(close + 1);
      return true;
    }
    default:
      break;
  }
  // Escaped punctuation stands for itself; other letters have meanings that are not read here.
  if (*c >= 128 || (*c >= '0' && *c <= '9') || ((*c | 32) >= 'a' && (*c | 32) <= 'z')) return false;
  single = *c;
  return true;
}

bool Reader::char_class(CharSet& set) {
  bool negated = take("^");
  if (peek() == ']') return false;  // engines disagree on what a leading bracket means
  while (!take("]")) {
    if (done() || rest_.starts_with("&&") || peek() == '[') return false;
    std::optional<char32_t> low;
    if (take("\\")) {
      if (!escape(set, low)) return false;
    } else {
      low = take_char();
      if (!low) return false;
    }
    if (!low) continue;
    char32_t high = *low;
    if (rest_.size() > 1 && peek() == '-' && rest_[1] != ']') {
      take("-");
      std::optional<char32_t> upper;
      CharSet ignored;
      if (take("\\")) {
        if (!escape(ignored, upper)) return false;
      } else {
        upper = take_char();
      }
      if (!upper || *upper < *low) return false;
      high = *upper;
    }
    set.add_range(*low, high);
  }
  if (negated) set.negate();
  return true;
}

bool Reader::number(std::uint32_t& value) {
  std::size_t digits = 0;
  value = 0;
  while (digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9' && digits < 4)
    value = value * 10 + static_cast<std::uint32_t>(rest_[digits++] - '0');
  rest_.remove_prefix(digits);
  return digits > 0;
}

bool Reader::quantifier(Item& item) {
  if (take("?")) {
    item.min = 0;
  } else if (take("*")) {
    item.min = 0;
    item.max = kUnbounded;
  } else if (take("+")) {
    item.max = kUnbounded;
  } else if (take("{")) {
    if (!number(item.min)) return false;
    item.max = item.min;
    if (take(",") && !number(item.max)) item.max = kUnbounded;
    if (!take("}") || item.max < item.min || item.min > kLargestCount) return false;
  } else {
    return true;
  }
  if (peek() == '?') return false;  // lazy
  item.possessive = take("+");
  return true;
}

bool Reader::item(Item& item) {
  if (take("[")) {
    if (!char_class(item.set)) return false;
  } else {
    std::optional<char32_t> single;
    if (take("\\")) {
      if (!escape(item.set, single)) return false;
    } else {
      if (std::string_view("().|^$*+?{").find(peek()) != std::string_view::npos) return false;
      single = take_char();
      if (!single) return false;
    }
    if (single) item.set.add_range(*single, *single);
  }
  item.set.seal();
  return quantifier(item);
}

bool read_known(std::string_view text, Arm& arm) {
  for (const KnownArm& known : kKnownArms)
    if (text == known.text) {
      arm.shape = known.shape;
      arm.contractions = known.contractions;
      return true;
    }
  return false;
}

// Reads "(?i:'s|...)?" at the end of an arm.
bool read_suffix(std::string_view text, Arm& arm) {
  if (!text.ends_with('?')) return false;
  Arm suffix;
  if (!read_known(text.substr(0, text.size() - 1), suffix) || suffix.shape != Shape::kContraction)
    return false;
  arm.contractions = suffix.contractions;
  return true;
}

bool shape_items(std::vector<Item> items, Arm& arm) {
  if (items.empty()) return false;
  bool fixed = std::all_of(items.begin(), items.end(),
                           [](const Item& item) { return item.min == 1 && item.max == 1; });
  if (fixed && items.size() > 1) {
    arm.shape = Shape::kFixed;
    arm.items = std::move(items);
    return arm.items.size() <= kLargestCount && arm.contractions == Contractions::kNone;
  }
  if (items.size() > 1 && items[0].max == 1) {
    arm.lead = std::move(items[0]);
    items.erase(items.begin());
  }
  bool two = items.size() == 2;
  if (two && items[0].min == 0 && items[0].max == kUnbounded && !items[0].possessive &&
      items[1].min == 1 && items[1].max == kUnbounded) {
    arm.shape = Shape::kTwoRuns;
  } else if (items[0].min >= 1 && (items.size() == 1 || (two && items[1].min == 0))) {
    arm.shape = Shape::kRun;
  } else {
    return false;
  }
  arm.items = std::move(items);
  return true;
}

bool read_arm(std::string_view text, Arm& arm) {
  if (read_known(text, arm)) return true;
  Reader reader(text);
  std::vector<Item> items;
  while (!reader.done()) {
    if (reader.rest().starts_with("(") || reader.rest().starts_with("'(")) {
      if (!read_suffix(reader.rest(), arm)) return false;
      break;
    }
    Item item;
    if (!reader.item(item)) return false;
    items.push_back(std::move(item));
  }
  return shape_items(std::move(items), arm);
}

// The parts between top-level bars.
std::vector<std::string_view> alternatives(std::string_view pattern) {
  std::vector<std::string_view> parts;
  int round = 0;
  bool square = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    if (c == '\\')
      ++i;
    else if (c == '[' && !square)
      square = true;
    else if (c == ']')
      square = false;
    else if (!square && (c == '(' || c == ')'))
      round += c == '(' ? 1 : -1;
    else if (!square && c == '|' && round == 0) {
      parts.push_back(pattern.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(pattern.substr(begin));
  return parts;
}

}  // namespace

std::optional<Scanner> Scanner::from_pattern(std::string_view pattern) {
  Scanner scanner;
  if (pattern == kDigitGroupsAtWordEnd || pattern == kDigitGroupStarts) {
    Arm arm;
    arm.shape = Shape::kDigitGroups;
    arm.group_in_words = pattern == kDigitGroupStarts;
    arm.items.emplace_back();
    arm.items[0].set.add_categories(category_mask("Nd"));
    arm.items[0].set.seal();
    scanner.arms_.push_back(std::move(arm));
    return scanner;
  }
  std::vector<std::string_view> parts = alternatives(pattern);
  if (parts.size() > 64) return std::nullopt;
  std::size_t memos = 0;
  for (std::string_view text : parts) {
    Arm arm;
    if (!read_arm(text, arm)) return std::nullopt;
    bool plain =
        arm.shape == Shape::kRun || arm.shape == Shape::kFixed || arm.shape == Shape::kContraction;
    if (!plain) arm.memo = memos++;
    if (memos > kMostMemos) return std::nullopt;
    scanner.arms_.push_back(std::move(arm));
  }
  return scanner;
}

}  // namespace vitrine
