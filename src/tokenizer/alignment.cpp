#include "tokenizer/alignment.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/unicode.h"

namespace vitrine {
namespace {

constexpr std::uint32_t kFar = 6;  // characters that are skipped at most to agree again
constexpr char32_t kMark = 0x2581;

char32_t lower(char32_t c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; }

bool alike(char32_t a, char32_t b) {
  return lower(a) == lower(b) || (b == kMark && is_space(a)) || (b == ' ' && is_space(a));
}

// Both from here on: one pair, and the next one too where there is one.
bool agree(const Chars& a, std::uint32_t i, const Chars& b, std::uint32_t j) {
  if (i >= a.size() || j >= b.size() || !alike(a.code[i], b.code[j])) return false;
  return i + 1 >= a.size() || j + 1 >= b.size() || alike(a.code[i + 1], b.code[j + 1]);
}

}  // namespace

Alignment::Alignment(std::string_view text, std::string_view normalized)
    : same_(text == normalized) {
  if (same_) return;
  Chars a, b;
  a.assign(text);
  b.assign(normalized);
  sources_.reserve(normalized.size() + 1);
  std::uint32_t i = 0, j = 0;
  // The next character of b comes from character `from` of a, or from nothing before that.
  auto set = [&](std::uint32_t from, bool something) {
    from = std::min(from, a.size());
    something = something && from < a.size();
    const std::uint32_t begin = a.offset[from], end = something ? a.offset[from + 1] : begin;
    // A character that stayed as it is has its own bytes.
    const bool kept =
        something && a.code[from] == b.code[j] && end - begin == b.offset[j + 1] - b.offset[j];
    for (std::uint32_t k = 0; k < b.offset[j + 1] - b.offset[j]; ++k)
      sources_.push_back(kept ? Span{begin + k, begin + k + 1} : Span{begin, end});
    ++j;
  };
  while (j < b.size()) {
    if (i < a.size() && alike(a.code[i], b.code[j])) {
      set(i++, true);
      continue;
    }
    // The nearest pair that agrees; without one, a character stands for a character.
    std::uint32_t skip_a = 1, skip_b = 1;
    bool found = false;
    for (std::uint32_t far = 1; far <= 2 * kFar && !found; ++far)
      for (std::uint32_t x = far > kFar ? far - kFar : 0; x <= std::min(far, kFar) && !found; ++x)
        if (agree(a, i + x, b, j + far - x)) skip_a = x, skip_b = far - x, found = true;
    for (std::uint32_t k = 0; k < skip_b && j < b.size(); ++k)
      set(std::min(i + k, i + skip_a), k < skip_a);
    i = std::min(i + skip_a, a.size());
  }
  const auto end = static_cast<std::uint32_t>(text.size());
  sources_.push_back({end, end});
}

}  // namespace vitrine
