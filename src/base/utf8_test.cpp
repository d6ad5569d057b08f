#include "base/utf8.h"

#include <gtest/gtest.h>

namespace vitrine {
namespace {

TEST(Utf8, RoundTripsEveryCodePoint) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    utf8_append(text, code);
    Utf8Char c = utf8_next(text);
    ASSERT_TRUE(c.valid) << static_cast<unsigned>(code);
    ASSERT_TRUE(c.code == code);
    ASSERT_EQ(c.length, static_cast<int>(text.size()));
  }
}

TEST(Utf8, RefusesWhatIsNotUtf8) {
  for (const char* bad : {"\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                          "\xF0\x80\x80\x80", "\xFF", "\xE2\x82", "a\xC3"})
    EXPECT_FALSE(utf8_valid(bad)) << bad;
  EXPECT_EQ(utf8_sanitize("a\xE2\x82z"), "a\xEF\xBF\xBDz");
}

TEST(Utf8, FindsTheIncompleteTail) {
  EXPECT_EQ(utf8_incomplete_tail("abc"), 0u);
  EXPECT_EQ(utf8_incomplete_tail("a\xC3"), 1u);
  EXPECT_EQ(utf8_incomplete_tail("a\xE2\x82"), 2u);
  EXPECT_EQ(utf8_incomplete_tail("a\xF0\x9F\x98"), 3u);
  EXPECT_EQ(utf8_incomplete_tail("a\xF0\x9F\x98\x80"), 0u);
  EXPECT_EQ(utf8_incomplete_tail("\x80\x80\x80"), 0u);
  EXPECT_EQ(utf8_incomplete_tail("\xE2\x28"), 0u);
}

TEST(Utf8, ShortenedTextEndsWithAWholeCharacter) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "abc...");
  EXPECT_EQ(shortened("ab\u00e9d", 3), "ab...");
  EXPECT_EQ(shortened("", 3), "");
  EXPECT_EQ(shortened(std::string(41, 'x')), std::string(40, 'x') + "...");
}

}  // namespace
}  // namespace vitrine
