// Character classes over Unicode general categories, and a text decoded for scanning.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vitrine {

// A general category in utf8proc's numbering, 0 to 29; those that are used by name are listed.
enum class Category : std::uint8_t { kMn = 6 };

using CategoryMask = std::uint32_t;
inline constexpr CategoryMask kAllCategories = (1u << 30) - 1;
inline constexpr CategoryMask category_bit(Category c) { return 1u << static_cast<int>(c); }
// Bits of a category by its short name: "L" (all letters), "Lu", "P"... 0 when unknown.
CategoryMask category_mask(std::string_view name);

Category category_of(char32_t c);
bool is_space(char32_t c);    // White_Space
bool is_word(char32_t c);     // what \w matches
bool is_chinese(char32_t c);  // the ideograph blocks that BERT splits on
void append_lowercase(std::string& out, char32_t c);

// A set of characters: categories, ranges, white space; possibly negated.
class CharSet {
 public:
  void add_categories(CategoryMask mask) { mask_ |= mask; }
  void add_range(char32_t first, char32_t last) { ranges_.emplace_back(first, last); }
  void add_space() { space_ = true; }
  void add_word();
  void negate() { negated_ = true; }
  // Call once after the last change.
  void seal();

  bool contains(char32_t c, Category category) const {
    return c < 128 ? ascii_[c] : slow_contains(c, category);
  }
  bool contains(char32_t c) const { return contains(c, category_of(c)); }

 private:
  bool slow_contains(char32_t c, Category category) const;

  CategoryMask mask_ = 0;
  bool space_ = false, negated_ = false;
  std::vector<std::pair<char32_t, char32_t>> ranges_;  // sorted, disjoint after seal()
  bool ascii_[128] = {};
};

// A valid UTF-8 text as code points with their categories and byte offsets.
struct Chars {
  std::string_view text;
  std::vector<char32_t> code;
  std::vector<Category> category;
  std::vector<std::uint32_t> offset;  // size() + 1 entries

  void assign(std::string_view utf8);
  std::uint32_t size() const { return static_cast<std::uint32_t>(code.size()); }
  std::string_view slice(std::uint32_t begin, std::uint32_t end) const {
    return text.substr(offset[begin], offset[end] - offset[begin]);
  }
};

// Half-open range of characters (of a Chars) or bytes (of a text).
struct Span {
  std::uint32_t begin, end;
};

// Start of the character that ends before `end` (> 0) in valid UTF-8.
std::size_t previous_char(std::string_view text, std::size_t end);

}  // namespace vitrine
