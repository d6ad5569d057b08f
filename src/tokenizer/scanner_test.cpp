#include "tokenizer/scanner.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"
#include "tokenizer/gguf_pre.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/regex.h"

namespace vitrine {
namespace {

// Patterns of published tokenizers, in the spellings of their tokenizer.json files.
const char* const kPublished[] = {
    kGpt2Pattern.data(),
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"(\p{N})",
    R"(\p{N}{1,3})",
    R"(\p{N}+)",
    R"([\r\n])",
    R"(\s?\p{L}+)",
    R"(\s?\p{P}+)",
    R"(\s+$)",
    "[0-9][0-9][0-9]",
    R"([\p{P}\$\+<=>\^~\|`]+)",
    R"( ?[^(\s|.,!?…。，、।۔،)]+)",
    "[一-龥぀-ゟ゠-ヿ]+",
    R"(\d{1,3}(?=(?:\d{3})*\b))",
    R"([^\n]+|[\n]+)",
    R"(\w+|[^\w\s]+)",
    R"(\p{Lu}*\p{Ll}+|\p{Lu}+)",
    R"(x?x{3})"};

std::vector<Span> by_scanner(const Scanner& scanner, const Chars& chars) {
  std::vector<Span> spans;
  scanner.find_all(chars, {0, chars.size()}, spans);
  for (Span& span : spans) span = {chars.offset[span.begin], chars.offset[span.end]};
  return spans;
}

std::string random_text(std::mt19937& random) {
  static const char32_t kAlphabet[] = {
      'a',    'b',   's',    't',   'l',    'e',    'r',     'v',    'x',    'A',    'S',
      'L',    'Z',   '\'',   '\'',  ' ',    ' ',    ' ',     '\n',   '\r',   '\t',   '1',
      '2',    '9',   '.',    ',',   '!',    '/',    '_',     '$',    '+',    '|',    0xE9,
      0xC9,   0x17F, 0x1C5,  0x2B0, 0x4E2D, 0x3042, 0x301,   0x903,  0xA0,   0x3000, 0x85,
      0x2028, 0x663, 0x2163, 0xBD,  0x20AC, 0x2026, 0x1F600, 0x200D, 0xE000, 0x378,  0};
  std::string text;
  for (std::size_t n = random() % 24; n > 0; --n) {
    char32_t c = kAlphabet[random() % std::size(kAlphabet)];
    for (std::size_t repeat = random() % 5 == 0 ? random() % 6 : 1; repeat > 0; --repeat)
      utf8_append(text, c);
  }
  return text;
}

TEST(Scanner, FindsWhatPcre2Finds) {
  std::mt19937 random(3);
  for (const char* pattern : kPublished) {
    std::optional<Scanner> scanner = Scanner::from_pattern(pattern);
    ASSERT_TRUE(scanner) << pattern;
    Result<Regex> regex = Regex::compile(pattern);
    ASSERT_TRUE(regex.ok()) << regex.error().message;
    for (int round = 0; round < 3000; ++round) {
      std::string text = random_text(random);
      Chars chars;
      chars.assign(text);
      std::vector<Span> found = by_scanner(*scanner, chars);
      std::vector<Regex::Match> wanted;
      regex->find_all(text, wanted);
      bool same = found.size() == wanted.size();
      for (std::size_t i = 0; same && i < found.size(); ++i)
        same = found[i].begin == wanted[i].span.begin && found[i].end == wanted[i].span.end;
      ASSERT_TRUE(same) << pattern << "\n on: " << testing::PrintToString(text);
    }
  }
}

TEST(Scanner, LeavesOtherPatternsToPcre2) {
  for (const char* pattern :
       {"(a|b)+", "a(?=b)", "a.c", "^a", "a$", "[a&&b]", "a*?", "(?i)a", "a\\b", "[[:alpha:]]",
        "a{3", "", "a|", "\\p{Han}+", "[]a]", "a{200}"})
    EXPECT_FALSE(Scanner::from_pattern(pattern)) << pattern;
}

TEST(Scanner, GroupsDigitsFromTheRight) {
  Scanner scanner = *Scanner::from_pattern(R"((?=(\d{3})+(?!\d)))");
  Chars chars;
  chars.assign("1234567");
  std::vector<Span> found = by_scanner(scanner, chars);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].end, 1u);
  EXPECT_EQ(found[1].end, 4u);
}

TEST(Regex, RewritesOnigurumaSpellings) {
  auto count = [](const char* pattern, std::string_view text) {
    Result<Regex> regex = Regex::compile(pattern);
    EXPECT_TRUE(regex.ok()) << (regex.ok() ? "" : regex.error().message);
    std::vector<Regex::Match> matches;
    if (regex.ok()) regex->find_all(text, matches);
    return matches.size();
  };
  EXPECT_EQ(count(R"([a-z&&[^aeiou]])", "abcde"), 3u);
  EXPECT_EQ(count(R"([\p{L}&&[^\p{Han}]])", "a中b"), 2u);
  EXPECT_EQ(count(R"(\p{Han}+)", "中、文"), 2u);  // the comma is shared by scripts, not Han
  EXPECT_EQ(count(R"(\bx\b)", "x e\u0301x x"), 2u);
  EXPECT_EQ(count(R"(\h+)", "beef xyz 12"), 2u);
  EXPECT_EQ(count(R"(\u00e9)", "é"), 1u);
  EXPECT_EQ(count(R"(x*)", "axb"), 4u);  // "", "x", "", ""
  EXPECT_FALSE(Regex::compile("(").ok());
  EXPECT_EQ(Regex::compile("(").error().code, ErrorCode::kUnsupported);
}

TEST(Regex, MatchesAcrossWindows) {
  std::string text = std::string(3000, 'a') + "b" + std::string(5000, 'c') + "b";
  Regex regex = std::move(Regex::compile("(?:a|c)+(?=b)|b")).value();
  std::vector<Regex::Match> matches;
  regex.find_all(text, matches);
  ASSERT_EQ(matches.size(), 4u);
  EXPECT_EQ(matches[0].span.end, 3000u);
  EXPECT_EQ(matches[2].span.end, 8001u);
  EXPECT_EQ(regex.replace_all(text, "-"), "----");
}

TEST(Regex, GivesUpInsteadOfBlowingUp) {
  // Exponential, quadratic and plain long.
  for (const char* pattern : {"(a+)+$", "(?:a|a)*b", "a*b", "(?=(a+))\\1b", "(?:a*)*b"}) {
    Regex regex = std::move(Regex::compile(pattern)).value();
    std::string text(200'000, 'a');
    text += '!';
    std::vector<Regex::Match> matches;
    regex.find_all(text, matches);
    std::uint32_t at = 0;
    for (const Regex::Match& match : matches) {
      EXPECT_GE(match.span.begin, at);
      EXPECT_GE(match.span.end, match.span.begin);
      at = match.span.end;
    }
    EXPECT_LE(at, text.size());
  }
}

TEST(GgufPre, EveryNameHasWorkingPatterns) {
  std::string names = gguf_pre_names();
  std::size_t count = 0;
  for (std::size_t at = 0; at < names.size();) {
    std::size_t comma = std::min(names.find(", ", at), names.size());
    std::string name = names.substr(at, comma - at);
    at = comma + 2;
    ++count;
    const GgufPre* pre = find_gguf_pre(name);
    ASSERT_NE(pre, nullptr) << name;
    PreTokenizer words;
    for (std::string_view pattern : pre->patterns) {
      Status added = words.add_regex(pattern, SplitBehavior::kIsolated, false);
      ASSERT_TRUE(added.ok()) << name << ": " << added.error().message;
    }
    std::string text = "Hello World's 12345 tests,\n\n  中文 café ÉCOLE's\t end  ", joined;
    words.run(text, true, [&](std::string_view word) { joined += word; });
    EXPECT_EQ(joined, text) << name;
  }
  EXPECT_GT(count, 70u);
  EXPECT_EQ(find_gguf_pre("no such name"), nullptr);
}

}  // namespace
}  // namespace vitrine
