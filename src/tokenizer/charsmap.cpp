#include "tokenizer/charsmap.h"

#include <utf8proc.h>

#include <cstring>

#include "base/utf8.h"

namespace vitrine {
namespace {

// A unit of the double array: an offset to its children, the label it is reached by, and whether a
// value hangs below it.
std::uint32_t unit_offset(std::uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }
std::uint32_t unit_label(std::uint32_t unit) { return unit & ((1u << 31) | 0xFF); }
bool unit_has_value(std::uint32_t unit) { return (unit >> 8) & 1; }
std::uint32_t unit_value(std::uint32_t unit) { return unit & ((1u << 31) - 1); }

constexpr std::size_t kShortGrapheme = 6;
// No published rule has a key nearly this long; longer ones could make every position expensive.
constexpr std::size_t kLongestKey = 256;

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view bytes) {
  std::uint32_t size = 0;
  if (bytes.size() >= 4) std::memcpy(&size, bytes.data(), 4);
  if (bytes.size() < 4 || size % 4 != 0 || size > bytes.size() - 4)
    return make_error(ErrorCode::kMalformed,
                      "precompiled_charsmap: {} bytes do not hold a trie of {} bytes", bytes.size(),
                      size);
  Charsmap map;
  map.units_.resize(size / 4);
  if (size > 0) std::memcpy(map.units_.data(), bytes.data() + 4, size);
  map.replacements_ = bytes.substr(4 + size);
  return map;
}

std::optional<Charsmap::Match> Charsmap::search(std::string_view text, bool longest) const {
  std::optional<Match> found;
  if (units_.empty()) return found;
  std::size_t node = unit_offset(units_[0]);
  for (std::size_t i = 0; i < text.size() && i < kLongestKey; ++i) {
    auto label = static_cast<unsigned char>(text[i]);
    node ^= label;
    if (label == 0 || node >= units_.size() || unit_label(units_[node]) != label) break;
    bool value = unit_has_value(units_[node]);
    node ^= unit_offset(units_[node]);
    if (!value) continue;
    if (node >= units_.size()) break;
    std::size_t at = unit_value(units_[node]);
    std::size_t end = at < replacements_.size() ? replacements_.find('\0', at) : std::string::npos;
    if (end == std::string::npos) break;
    found = Match{i + 1, std::string_view(replacements_).substr(at, end - at)};
    if (!longest) break;
  }
  return found;
}

std::string Charsmap::normalize(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t length = static_cast<std::size_t>(utf8_next(text).length);
    if (std::optional<Match> match = longest(text)) {
      out += match->replacement;
      length = match->length;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string Charsmap::normalize_graphemes(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    utf8proc_int32_t state = 0;
    Utf8Char c = utf8_next(text);
    auto length = static_cast<std::size_t>(c.length);
    while (length < text.size()) {
      Utf8Char next = utf8_next(text.substr(length));
      if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(c.code),
                                           static_cast<utf8proc_int32_t>(next.code), &state))
        break;
      length += static_cast<std::size_t>(next.length);
      c = next;
    }
    std::string_view grapheme = text.substr(0, length);
    text.remove_prefix(length);
    std::optional<Match> whole;
    if (grapheme.size() < kShortGrapheme) whole = shortest(grapheme);
    if (whole) {
      out += whole->replacement;
      continue;
    }
    while (!grapheme.empty()) {
      std::string_view part =
          grapheme.substr(0, static_cast<std::size_t>(utf8_next(grapheme).length));
      std::optional<Match> match = shortest(part);
      out += match ? match->replacement : part;
      grapheme.remove_prefix(part.size());
    }
  }
  return out;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int count = 0;
  std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  for (char c : text.substr(0, text.size() - padding)) {
    std::uint32_t value;
    if (c >= 'A' && c <= 'Z')
      value = static_cast<std::uint32_t>(c - 'A');
    else if (c >= 'a' && c <= 'z')
      value = static_cast<std::uint32_t>(c - 'a' + 26);
    else if (c >= '0' && c <= '9')
      value = static_cast<std::uint32_t>(c - '0' + 52);
    else if (c == '+' || c == '/')
      value = c == '+' ? 62 : 63;
    else
      return std::nullopt;
    bits = bits << 6 | value;
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return out;
}

}  // namespace vitrine
