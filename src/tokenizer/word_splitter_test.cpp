#include "tokenizer/word_splitter.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "base/utf8.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/regex.h"
#include "tokenizer/test_support.h"
#include "tokenizer/word_cache.h"

namespace vitrine {
namespace {

#define VT_BODY(lead, numbers, others, line_ends)                               \
  "|[^\\r\\n\\p{L}\\p{N}]" lead "|" numbers "| ?" others "[\\r\\n]*|" line_ends \
  "|\\s+(?!\\S)|"                                                               \
  "\\s+"
const std::string kHeads[] = {"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
                              "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])",
                              "'(?i:[sdmt]|ll|ve|re)"};
const std::string kBodies[] = {
    VT_BODY("?\\p{L}+", "\\p{N}{1,3}", "[^\\s\\p{L}\\p{N}]+", "\\s*[\\r\\n]+"),
    VT_BODY("?\\p{L}+", "\\p{N}", "[^\\s\\p{L}\\p{N}]+", "\\s*[\\r\\n]+"),
    VT_BODY("?[\\p{L}\\p{M}]+", "\\p{N}", "[^\\s\\p{L}\\p{M}\\p{N}]+", "\\s*[\\r\\n]+"),
    VT_BODY("?+\\p{L}+", "\\p{N}{1,3}", "[^\\s\\p{L}\\p{N}]++", "\\s*[\\r\\n]"),
    VT_BODY("?+\\p{L}+", "\\p{N}", "[^\\s\\p{L}\\p{N}]++", "\\s*[\\r\\n]")};

// Characters of every kind, some often and in runs; when asked, now and then any code point at all.
std::string random_text(std::mt19937& random, bool any) {
  static const char32_t kAlphabet[] = {
      'a',  'b',   's',    't',   'l',    'e',    'r',   'v',    'm',    'D',    'S',     'L',
      '\'', '\'',  ' ',    ' ',   ' ',    '\n',   '\r',  '\t',   '1',    '9',    '.',     '!',
      0xE9, 0x17F, 0x4E2D, 0x301, 0x3000, 0x2028, 0x663, 0x2163, 0x20AC, 0xE000, 0x1F600, 0x10400};
  std::string text;
  for (std::size_t n = random() % 30; n > 0; --n) {
    char32_t c = kAlphabet[random() % std::size(kAlphabet)];
    if (any && random() % 8 == 0) c = random() % 0x110000;
    if (c >= 0xD800 && c < 0xE000) c = 'x';
    for (std::size_t repeat = random() % 5 == 0 ? random() % 40 : 1; repeat > 0; --repeat)
      utf8_append(text, c);
  }
  return text;
}

using Words = std::vector<std::string>;

Words by_regex(const Regex& regex, const std::string& text) {
  std::vector<Regex::Match> matches;
  regex.find_all(text, matches);
  Words words;
  for (const Regex::Match& match : matches)
    words.push_back(text.substr(match.span.begin, match.span.end - match.span.begin));
  return words;
}

Words by_scanner(const Scanner& scanner, const std::string& text) {
  Chars chars;
  chars.assign(text);
  std::vector<Span> spans;
  scanner.find_all(chars, {0, chars.size()}, spans);
  Words words;
  for (Span span : spans) words.emplace_back(chars.slice(span.begin, span.end));
  return words;
}

// PCRE2 may have an older Unicode version, so only old characters are compared.
void expect_same(const std::string& pattern, unsigned seed) {
  std::optional<WordSplitter> splitter = WordSplitter::from_pattern(pattern);
  std::optional<Scanner> scanner = Scanner::from_pattern(pattern);
  Result<Regex> regex = Regex::compile(pattern);
  ASSERT_TRUE(splitter && scanner && regex.ok()) << pattern;
  std::mt19937 random(seed);
  for (int round = 0; round < 3000; ++round) {
    bool any = round % 2 == 0;
    std::string text = random_text(random, any);
    Words found;
    splitter->for_each(text, [&](std::string_view word) { found.emplace_back(word); });
    ASSERT_EQ(found, any ? by_scanner(*scanner, text) : by_regex(*regex, text))
        << pattern << "\n on: " << testing::PrintToString(text);
  }
}

TEST(WordSplitter, SplitsAsPcre2AndTheScannerDo) {
  expect_same(std::string(kGpt2Pattern), 1);
  for (const std::string& head : kHeads)
    for (const std::string& body : kBodies) expect_same(head + body, 2);
}

TEST(WordSplitter, KnowsNoOtherPattern) {
  for (std::string pattern : {"", "a", "\\s+", "(?i:'s|'t|'re|'ve|'m|'ll|'d)"})
    EXPECT_FALSE(WordSplitter::from_pattern(pattern)) << pattern;
  EXPECT_FALSE(WordSplitter::from_pattern(kHeads[0] + kBodies[0] + "|x"));
}

TEST(PreTokenizer, HasASplitterOnlyForOnePlainSplit) {
  std::string llama3 = kHeads[0] + kBodies[0];
  auto has = [&](SplitBehavior behavior, bool invert, bool more) {
    PreTokenizer words;
    EXPECT_TRUE(words.add_regex(llama3, behavior, invert).ok());
    EXPECT_TRUE(!more || words.add_regex("a", SplitBehavior::kRemoved, false).ok());
    return words.splitter() != nullptr;
  };
  EXPECT_TRUE(has(SplitBehavior::kIsolated, false, false));
  EXPECT_FALSE(has(SplitBehavior::kIsolated, false, true));
  EXPECT_FALSE(has(SplitBehavior::kIsolated, true, false));
  EXPECT_FALSE(has(SplitBehavior::kRemoved, false, false));
}

TEST(WordCache, TellsWordsApart) {
  WordCache cache;
  std::string text = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
  for (std::int32_t n = 1; n <= 15; ++n) {
    std::string_view word = std::string_view(text).substr(0, static_cast<std::size_t>(n));
    WordCache::Key key = WordCache::key_of(word, text.size());
    EXPECT_EQ(key, WordCache::key_of(std::string(word), static_cast<std::size_t>(n)));
    EXPECT_EQ(cache.find(key), nullptr);
    cache.insert(key, &n, 1);
    ASSERT_NE(cache.find(key), nullptr);
    EXPECT_EQ(cache.find(key)->ids[0], n);
    EXPECT_EQ(cache.find(key)->ids[1], -1);
  }
  std::string zeros(3, '\0');
  EXPECT_EQ(cache.find(WordCache::key_of(zeros, 3)), nullptr);
}

// More words than the cache has room for, from several threads at once.
TEST(WordCache, ChangesNoId) {
  auto tokenizer = fixture_tokenizer("byte_bpe");
  std::mt19937 random(7);
  std::vector<std::string> words;
  std::string text;
  for (int i = 0; i < 100'000; ++i) {
    std::string word = " ";
    for (std::size_t n = 1 + random() % 18; n > 0; --n)
      word += static_cast<char>('a' + random() % (i % 2 ? 26 : 3));
    if (i < 2000) words.push_back(word);
    text += word;
  }
  Ids first = tokenizer->encode(text, kPlain), again = tokenizer->encode(text, kPlain);
  EXPECT_EQ(first, again);
  EXPECT_EQ(tokenizer->decode(first), text);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] { EXPECT_EQ(tokenizer->encode(text, kPlain), first); });
  threads.clear();
  // A tokenizer that has seen nothing else gives each word the same ids.
  auto fresh = fixture_tokenizer("byte_bpe");
  Ids one_by_one;
  for (const std::string& word : words) {
    Ids ids = fresh->encode(word, kPlain);
    one_by_one.insert(one_by_one.end(), ids.begin(), ids.end());
  }
  first.resize(one_by_one.size());
  EXPECT_EQ(first, one_by_one);
}

}  // namespace
}  // namespace vitrine
