#include "jinja/chars.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace vitrine::jinja {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

}  // namespace

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_line_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }
bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL; }
bool is_cased(char32_t c) {
  return is_upper(c) || is_lower(c) || category(c) == UTF8PROC_CATEGORY_LT;
}
bool is_alpha(char32_t c) {
  auto k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}
bool is_digit(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_word(char32_t c) {
  auto k = category(c);
  return c == '_' || is_alpha(c) || (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO);
}

Text map_chars(const Text& text, const std::function<void(char32_t, std::string&)>& map) {
  constexpr std::size_t kPart = 4096;  // so that a limit is noticed before much has been made
  charge_chars(text.size());
  Text out;
  std::string_view view = text.view();
  std::string part;
  auto span = text.caller().begin();
  for (std::size_t at = 0; at < view.size();) {
    // Up to here all bytes are of one kind.
    while (span != text.caller().end() && span->end <= at) ++span;
    bool inside = span != text.caller().end() && span->begin <= at;
    std::size_t end = inside ? span->end : span != text.caller().end() ? span->begin : view.size();
    while (at < end) {
      part.clear();
      while (at < end && part.size() < kPart) {
        Utf8Char c = utf8_next(view.substr(at));
        map(c.code, part);
        at += static_cast<std::size_t>(c.length);
      }
      out.append(part, inside, inside ? span->source : 0);
    }
  }
  out.set_html(text.html());
  return out;
}

void append_upper(std::string& out, char32_t c) {
  if (c == 0xDF)
    out += "SS";
  else
    utf8_append(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}

void append_lower(std::string& out, char32_t c) {
  utf8_append(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

Text upper(const Text& text) {
  return map_chars(text, [](char32_t c, std::string& out) { append_upper(out, c); });
}

Text lower(const Text& text) {
  return map_chars(text, [](char32_t c, std::string& out) { append_lower(out, c); });
}

Text capitalize(const Text& text) {
  bool first = true;
  return map_chars(text, [&](char32_t c, std::string& out) {
    if (std::exchange(first, false))
      utf8_append(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
    else
      append_lower(out, c);
  });
}

Text escape_html(const Text& text) {
  if (text.html()) return text;
  Text out = map_chars(text, [](char32_t c, std::string& out) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        utf8_append(out, c);
    }
  });
  out.set_html(true);
  return out;
}

Text strip(const Text& text, bool left, bool right, const Text* chars) {
  std::u32string set;
  if (chars != nullptr) {
    charge_bytes(chars->size() * sizeof(char32_t));
    for (std::string_view rest = chars->view(); !rest.empty();) {
      Utf8Char c = utf8_next(rest);
      set += c.code;
      rest.remove_prefix(static_cast<std::size_t>(c.length));
    }
    std::sort(set.begin(), set.end());
  }
  auto gone = [&](char32_t c) {
    return chars == nullptr ? is_space(c) : std::binary_search(set.begin(), set.end(), c);
  };
  std::string_view view = text.view();
  std::size_t begin = 0, end = view.size();
  while (left && begin < end) {
    Utf8Char c = utf8_next(view.substr(begin));
    if (!gone(c.code)) break;
    begin += static_cast<std::size_t>(c.length);
  }
  while (right && end > begin) {
    std::size_t at = end - 1;
    while (at > begin && (static_cast<unsigned char>(view[at]) & 0xC0) == 0x80) --at;
    if (!gone(utf8_next(view.substr(at)).code)) break;
    end = at;
  }
  charge_chars(begin + view.size() - end);
  return text.substr(begin, end);
}

}  // namespace vitrine::jinja
