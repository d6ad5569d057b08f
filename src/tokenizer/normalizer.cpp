#include "tokenizer/normalizer.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/bpe.h"
#include "tokenizer/unicode.h"

namespace vitrine {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0; });
}

template <typename F>
void for_each_char(std::string_view text, F&& f) {
  while (!text.empty()) {
    Utf8Char c = utf8_next(text);
    f(c.code);
    text.remove_prefix(static_cast<std::size_t>(c.length));
  }
}

int combining_class(std::int32_t c) { return utf8proc_get_property(c)->combining_class; }

// Marks after one base in canonical order. utf8proc's own ordering is a bubble sort, which a long
// run of marks turns quadratic.
void order_marks(std::vector<std::int32_t>& codes) {
  for (std::size_t i = 0; i < codes.size();) {
    if (combining_class(codes[i]) == 0) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < codes.size() && combining_class(codes[end]) != 0) ++end;
    std::stable_sort(
        codes.begin() + static_cast<std::ptrdiff_t>(i),
        codes.begin() + static_cast<std::ptrdiff_t>(end),
        [](std::int32_t a, std::int32_t b) { return combining_class(a) < combining_class(b); });
    i = end;
  }
}

std::string apply_step(const norm::Form& step, std::string_view text) {
  return to_unicode_form(text, step.form);
}

std::string apply_step(const norm::Prepend& step, std::string_view text) {
  return text.empty() ? std::string() : step.text + std::string(text);
}

std::string apply_step(const norm::Replace& step, std::string_view text) {
  return step.text.empty() ? std::string(text) : replace_all(text, step.text, step.content);
}

std::string apply_step(const norm::ReplaceRegex& step, std::string_view text) {
  return step.regex.replace_all(text, step.content);
}

std::string apply_step(const norm::Lowercase&, std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_char(text, [&](char32_t c) { append_lowercase(out, c); });
  return out;
}

std::string apply_step(const norm::Strip& step, std::string_view text) {
  while (step.left && !text.empty()) {
    Utf8Char c = utf8_next(text);
    if (!is_space(c.code)) break;
    text.remove_prefix(static_cast<std::size_t>(c.length));
  }
  while (step.right && !text.empty()) {
    std::size_t last = previous_char(text, text.size());
    if (!is_space(utf8_next(text.substr(last)).code)) break;
    text = text.substr(0, last);
  }
  return std::string(text);
}

std::string apply_step(const norm::StripAccents&, std::string_view text) {
  static const CategoryMask marks = category_mask("M");
  std::string out;
  out.reserve(text.size());
  for_each_char(text, [&](char32_t c) {
    if (!(marks & category_bit(category_of(c)))) utf8_append(out, c);
  });
  return out;
}

std::string apply_step(const norm::ByteLevel&, std::string_view text) {
  return byte_level_encode(text);
}

std::string apply_step(const norm::Nmt&, std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_char(text, [&](char32_t c) {
    bool gone = (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F ||
                c == 0x8F || c == 0x9F;
    bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                 (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                 c == 0xFEFF || c == 0xFFFD;
    if (!gone) utf8_append(out, space ? U' ' : c);
  });
  return out;
}

std::string apply_step(const norm::Bert& step, std::string_view text) {
  static const CategoryMask control =
      category_mask("Cc") | category_mask("Cf") | category_mask("Co");
  std::string out;
  out.reserve(text.size());
  for_each_char(text, [&](char32_t c) {
    if (step.clean_text) {
      if (is_space(c))
        c = ' ';
      else if (c == 0 || c == 0xFFFD || (control & category_bit(category_of(c))))
        return;
    }
    bool apart = step.chinese && is_chinese(c);
    if (apart) out += ' ';
    utf8_append(out, c);
    if (apart) out += ' ';
  });
  if (step.strip_accents && !is_ascii(out)) {
    std::string plain;
    for_each_char(to_unicode_form(out, UnicodeForm::kNfd), [&](char32_t c) {
      if (category_of(c) != Category::kMn) utf8_append(plain, c);
    });
    out = std::move(plain);
  }
  return step.lowercase ? apply_step(norm::Lowercase{}, out) : out;
}

std::string apply_step(const norm::Compiled& step, std::string_view text) {
  return step.graphemes ? step.map.normalize_graphemes(text) : step.map.normalize(text);
}

std::string apply_step(const norm::SpaceMarks& step, std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  bool in_word = false, prefixed = false;
  for (char c : text) {
    if (c == ' ') {
      in_word = false;
      if (!step.collapse) out += kSpaceMark;
      continue;
    }
    if (!in_word && ((step.prefix && !prefixed) || (step.collapse && !out.empty()))) {
      out += kSpaceMark;
      prefixed = true;
    }
    in_word = true;
    out += c;
  }
  return out;
}

}  // namespace

std::string replace_all(std::string_view from, std::string_view text, std::string_view content) {
  std::string out;
  out.reserve(from.size());
  std::size_t at = 0;
  for (std::size_t found; (found = from.find(text, at)) != std::string_view::npos;
       at = found + text.size()) {
    out += from.substr(at, found - at);
    out += content;
  }
  out += from.substr(at);
  return out;
}

std::string to_unicode_form(std::string_view text, UnicodeForm form) {
  if (is_ascii(text)) return std::string(text);
  bool compose = form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc;
  bool compatible = form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd;
  auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<std::int32_t> codes;
  codes.reserve(text.size());
  for_each_char(text, [&](char32_t c) {
    utf8proc_int32_t parts[32];
    int boundary = 0;
    utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 32, options, &boundary);
    if (count > 0 && count <= 32)
      codes.insert(codes.end(), parts, parts + count);
    else
      codes.push_back(static_cast<std::int32_t>(c));
  });
  order_marks(codes);
  auto count = static_cast<utf8proc_ssize_t>(codes.size());
  if (compose)
    count = utf8proc_normalize_utf32(
        codes.data(), count, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    utf8_append(out, static_cast<char32_t>(codes[static_cast<std::size_t>(i)]));
  return out;
}

void Normalizer::add(norm::Step step) { steps_.push_back(std::move(step)); }

std::string Normalizer::apply(std::string_view text) const {
  std::string current(text);
  for (const norm::Step& step : steps_)
    current = std::visit([&](const auto& s) { return apply_step(s, current); }, step);
  return current;
}

}  // namespace vitrine
