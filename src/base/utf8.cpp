#include "base/utf8.h"

#include <cstring>

namespace vitrine {
namespace {

// Bytes a lead byte announces (0: not a lead byte) and the allowed range of the second byte.
struct Lead {
  int length;
  unsigned char low, high;
};

Lead lead_of(unsigned char c) {
  if (c < 0x80) return {1, 0, 0};
  if (c < 0xC2) return {0, 0, 0};
  if (c < 0xE0) return {2, 0x80, 0xBF};
  if (c == 0xE0) return {3, 0xA0, 0xBF};
  if (c == 0xED) return {3, 0x80, 0x9F};
  if (c < 0xF0) return {3, 0x80, 0xBF};
  if (c == 0xF0) return {4, 0x90, 0xBF};
  if (c < 0xF4) return {4, 0x80, 0xBF};
  if (c == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// Length of the longest prefix of a well-formed character; `complete` tells whether it is whole.
int prefix_length(std::string_view text, bool& complete) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  Lead lead = lead_of(byte(0));
  complete = lead.length == 1;
  if (lead.length <= 1) return 1;
  int n = 1;
  while (n < lead.length && n < static_cast<int>(text.size())) {
    unsigned char c = byte(n), low = n == 1 ? lead.low : 0x80, high = n == 1 ? lead.high : 0xBF;
    if (c < low || c > high) return n;
    ++n;
  }
  complete = n == lead.length;
  return n;
}

}  // namespace

Utf8Char utf8_next(std::string_view text) {
  bool complete = false;
  int n = prefix_length(text, complete);
  if (!complete) return {kReplacement, n, false};
  auto c = static_cast<unsigned char>(text[0]);
  if (n == 1) return {c, 1, true};
  char32_t code = c & (0x7F >> n);
  for (int i = 1; i < n; ++i) code = (code << 6) | (static_cast<unsigned char>(text[i]) & 0x3F);
  return {code, n, true};
}

void utf8_append(std::string& out, char32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

bool utf8_valid(std::string_view text) {
  while (!text.empty()) {
    std::uint64_t eight;
    if (text.size() >= sizeof eight) {
      std::memcpy(&eight, text.data(), sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {
        text.remove_prefix(sizeof eight);
        continue;
      }
    }
    Utf8Char c = utf8_next(text);
    if (!c.valid) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

std::string utf8_sanitize(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    Utf8Char c = utf8_next(text);
    utf8_append(out, c.code);
    text.remove_prefix(c.length);
  }
  return out;
}

std::size_t utf8_incomplete_tail(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    std::string_view tail = text.substr(text.size() - back);
    Lead lead = lead_of(static_cast<unsigned char>(tail[0]));
    if (lead.length <= 1) continue;
    bool complete = false;
    if (lead.length > static_cast<int>(back) &&
        prefix_length(tail, complete) == static_cast<int>(back))
      return back;
    return 0;
  }
  return 0;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::string_view head = text.substr(0, most);
  return std::string(head.substr(0, head.size() - utf8_incomplete_tail(head))) + "...";
}

}  // namespace vitrine
