#include "tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"

namespace vitrine {

CategoryMask category_mask(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
      "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
  CategoryMask mask = 0;
  for (int i = 0; i < 30; ++i)
    if (kNames[i] == name || (name.size() == 1 && kNames[i][0] == name[0])) mask |= 1u << i;
  return mask;
}

Category category_of(char32_t c) {
  return static_cast<Category>(utf8proc_category(static_cast<utf8proc_int32_t>(c)));
}

bool is_space(char32_t c) {
  if (c < 128) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word(char32_t c) {
  static const CharSet set = [] {
    CharSet s;
    s.add_word();
    s.seal();
    return s;
  }();
  return set.contains(c);
}

bool is_chinese(char32_t c) {
  static constexpr std::pair<char32_t, char32_t> kBlocks[] = {
      {0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
      {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  for (auto [first, last] : kBlocks)
    if (c >= first && c <= last) return true;
  return false;
}

void append_lowercase(std::string& out, char32_t c) {
  // The one character whose lower case is two characters.
  if (c == 0x130) {
    out += "i\u0307";
    return;
  }
  utf8_append(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

void CharSet::add_word() {
  add_categories(category_mask("L") | category_mask("M") | category_mask("Nd") |
                 category_mask("Nl") | category_mask("Pc"));
  // Alphabetic symbols, and the joiners.
  add_range(0x24B6, 0x24E9);
  add_range(0x1F130, 0x1F149);
  add_range(0x1F150, 0x1F169);
  add_range(0x1F170, 0x1F189);
  add_range(0x200C, 0x200D);
}

void CharSet::seal() {
  std::sort(ranges_.begin(), ranges_.end());
  std::vector<std::pair<char32_t, char32_t>> merged;
  for (auto range : ranges_) {
    if (!merged.empty() && range.first <= merged.back().second)
      merged.back().second = std::max(merged.back().second, range.second);
    else
      merged.push_back(range);
  }
  ranges_ = std::move(merged);
  for (char32_t c = 0; c < 128; ++c) ascii_[c] = slow_contains(c, category_of(c));
}

bool CharSet::slow_contains(char32_t c, Category category) const {
  bool in = (mask_ & category_bit(category)) || (space_ && is_space(c));
  if (!in && !ranges_.empty()) {
    auto it = std::upper_bound(ranges_.begin(), ranges_.end(), c,
                               [](char32_t x, const auto& range) { return x < range.first; });
    in = it != ranges_.begin() && c <= std::prev(it)->second;
  }
  return in != negated_;
}

void Chars::assign(std::string_view utf8) {
  text = utf8;
  code.clear();
  category.clear();
  offset.clear();
  code.reserve(utf8.size());
  category.reserve(utf8.size());
  offset.reserve(utf8.size() + 1);
  std::size_t at = 0;
  while (at < utf8.size()) {
    Utf8Char c = utf8_next(utf8.substr(at));
    code.push_back(c.code);
    category.push_back(category_of(c.code));
    offset.push_back(static_cast<std::uint32_t>(at));
    at += static_cast<std::size_t>(c.length);
  }
  offset.push_back(static_cast<std::uint32_t>(at));
}

std::size_t previous_char(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace vitrine
