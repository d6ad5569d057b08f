#include "tokenizer/word_splitter.h"

#include <immintrin.h>

#include <bit>
#include <vector>

#include "tokenizer/pretokenizer.h"
#include "tokenizer/unicode.h"

namespace vitrine {
namespace {

constexpr char32_t kTableSize = 0x10000;

struct Spelling {
  std::string_view text;
  std::uint32_t digits;
  bool marks;
};

// What follows the contractions in patterns like Llama 3's.
constexpr Spelling kBodies[] = {
    {R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     3, false},
    {R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)", 1,
     false},
    {R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     1, true},
    {R"(|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     3, false},
    {R"(|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)", 1,
     false},
};

}  // namespace

std::optional<WordSplitter> WordSplitter::from_pattern(std::string_view pattern) {
  static constexpr std::pair<std::string_view, Contractions> kHeads[] = {
      {"(?i:'s|'t|'re|'ve|'m|'ll|'d)", Contractions::kFolded},
      {"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])", Contractions::kAnyCase},
      {"'(?i:[sdmt]|ll|ve|re)", Contractions::kFolded},
  };
  Rules rules;
  if (pattern == kGpt2Pattern) {
    rules.contractions = Contractions::kLower;
    rules.digits = ~0u;
    rules.any_lead = rules.line_ends = false;
    rules.space_numbers = true;
    return WordSplitter(rules);
  }
  for (const auto& [head, contractions] : kHeads) {
    if (!pattern.starts_with(head)) continue;
    for (const Spelling& body : kBodies) {
      if (pattern.substr(head.size()) != body.text) continue;
      rules.contractions = contractions;
      rules.digits = body.digits;
      rules.marks = body.marks;
      return WordSplitter(rules);
    }
  }
  return std::nullopt;
}

WordSplitter::CharClass WordSplitter::class_of(char32_t code) {
  static const CategoryMask letters = category_mask("L"), marks = category_mask("M"),
                            numbers = category_mask("N");
  if (code == '\r' || code == '\n') return CharClass::kLineEnd;
  if (is_space(code)) return CharClass::kSpace;
  CategoryMask bit = category_bit(category_of(code));
  return bit & letters   ? CharClass::kLetter
         : bit & marks   ? CharClass::kMark
         : bit & numbers ? CharClass::kNumber
                         : CharClass::kOther;
}

const WordSplitter::CharClass* WordSplitter::class_table() {
  static const std::vector<CharClass> table = [] {
    std::vector<CharClass> all(kTableSize);
    for (char32_t c = 0; c < kTableSize; ++c) all[c] = class_of(c);
    return all;
  }();
  return table.data();
}

inline WordSplitter::Char WordSplitter::char_at(const Byte* p) const {
  if (*p < 0x80) return {classes_[*p], 1};
  if (*p < 0xE0) return {classes_[(*p & 0x1Fu) << 6 | (p[1] & 0x3Fu)], 2};
  char32_t tail = (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
  if (*p < 0xF0) return {classes_[(*p & 0x0Fu) << 12 | tail], 3};
  return {class_of((*p & 0x07u) << 18 | tail << 6 | (p[3] & 0x3Fu)), 4};
}

// Nothing (null) unless "'s", "'t", "'re", "'ve", "'m", "'ll" or "'d" begins at p, an apostrophe.
const WordSplitter::Byte* WordSplitter::contraction(const Byte* p, const Byte* end) const {
  auto letter = [&](std::ptrdiff_t i) -> Byte {
    if (end - p <= i) return 0;
    return rules_.contractions != Contractions::kLower && p[i] >= 'A' && p[i] <= 'Z' ? p[i] + 32
                                                                                     : p[i];
  };
  Byte first = letter(1), second = letter(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return p + 2;
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
      (first == 'l' && second == 'l'))
    return p + 3;
  // The long s folds to s.
  bool long_s = rules_.contractions == Contractions::kFolded && first == 0xC5 && second == 0xBF;
  return long_s ? p + 3 : nullptr;
}

namespace {

// How many of the 16 bytes at p are ASCII letters before the first that is not.
int leading_letters(const unsigned char* p) {
  __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  __m128i place = _mm_sub_epi8(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
  __m128i in = _mm_cmpeq_epi8(_mm_min_epu8(place, _mm_set1_epi8(25)), place);
  return std::countr_one(static_cast<std::uint32_t>(_mm_movemask_epi8(in)));
}

}  // namespace

inline const WordSplitter::Byte* WordSplitter::letters(const Byte* p, const Byte* end) const {
  for (;;) {
    while (end - p >= 16) {
      int n = leading_letters(p);
      p += n;
      if (n < 16) break;
    }
    while (p < end && *p < 0x80 && classes_[*p] == CharClass::kLetter) ++p;
    if (p == end || *p < 0x80) return p;
    Char c = char_at(p);
    if (!is_letter(c.kind)) return p;
    p += c.length;
  }
}

const WordSplitter::Byte* WordSplitter::numbers(const Byte* p, const Byte* end) const {
  for (std::uint32_t n = 0; p < end && n < rules_.digits; ++n) {
    Char c = char_at(p);
    if (c.kind != CharClass::kNumber) break;
    p += c.length;
  }
  return p;
}

const WordSplitter::Byte* WordSplitter::others(const Byte* p, const Byte* end) const {
  while (p < end) {
    Char c = char_at(p);
    if (!is_other(c.kind)) break;
    p += c.length;
  }
  if (rules_.line_ends)
    while (p < end && (*p == '\r' || *p == '\n')) ++p;
  return p;
}

// White space up to its last line end; or all of it but the last character, which belongs to what
// follows.
const WordSplitter::Byte* WordSplitter::spaces(const Byte* p, const Byte* end) const {
  const Byte *begin = p, *last = p, *after_line_end = nullptr;
  while (p < end) {
    Char c = char_at(p);
    if (c.kind != CharClass::kSpace && c.kind != CharClass::kLineEnd) break;
    last = p;
    p += c.length;
    if (c.kind == CharClass::kLineEnd) after_line_end = p;
  }
  if (rules_.line_ends && after_line_end != nullptr) return after_line_end;
  return p == end || last == begin ? p : last;
}

std::size_t WordSplitter::next(std::string_view text, std::size_t at) const {
  const auto* base = reinterpret_cast<const Byte*>(text.data());
  const Byte *p = base + at, *end = base + text.size(), *stop = nullptr;
  Char first = char_at(p);
  const Byte* q = p + first.length;
  if (is_letter(first.kind)) {
    stop = letters(q, end);
  } else if (first.kind == CharClass::kNumber) {
    stop = numbers(p, end);
  } else {
    if (*p == '\'') stop = contraction(p, end);
    if (stop == nullptr && q < end) {
      Char second = char_at(q);
      bool space = *p == ' ', lead = rules_.any_lead ? first.kind != CharClass::kLineEnd : space;
      if (lead && is_letter(second.kind))
        stop = letters(q + second.length, end);
      else if (space && is_other(second.kind))
        stop = others(q, end);
      else if (space && rules_.space_numbers && second.kind == CharClass::kNumber)
        stop = numbers(q, end);
    }
    if (stop == nullptr) stop = is_other(first.kind) ? others(p, end) : spaces(p, end);
  }
  return static_cast<std::size_t>(stop - base);
}

}  // namespace vitrine
