// UTF-8: strict decoding (no overlong forms, surrogates, or values past U+10FFFF).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vitrine {

inline constexpr char32_t kReplacement = 0xFFFD;

struct Utf8Char {
  char32_t code;  // kReplacement when invalid
  int length;     // bytes consumed, at least 1
  bool valid;
};

// Decodes the character at the start of `text` (not empty).
Utf8Char utf8_next(std::string_view text);
void utf8_append(std::string& out, char32_t code);
bool utf8_valid(std::string_view text);
// `text` with every invalid byte sequence replaced by U+FFFD (one per maximal invalid prefix).
std::string utf8_sanitize(std::string_view text);
// How many bytes at the end of `text` are the start of a character that is not complete yet (0..3).
std::size_t utf8_incomplete_tail(std::string_view text);

// For messages about text from outside: the text, or its beginning and "..." where it is longer than
// `most` bytes. No error shows more than 200 bytes of what came; every one goes through here.
std::string shortened(std::string_view text, std::size_t most = 40);

}  // namespace vitrine
