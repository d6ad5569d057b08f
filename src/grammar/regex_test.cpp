#include "grammar/regex.h"

#include <random>
#include <regex>

#include "grammar/json_text.h"
#include "grammar/numerals.h"
#include "grammar/test_support.h"

namespace vitrine::grammar {
namespace {

using namespace test;
using ::testing::HasSubstr;

Dfa compile(const std::string& pattern, Anchoring anchoring = Anchoring::kWhole) {
  Budget budget;
  auto dfa = regex_to_dfa(pattern, anchoring, "pattern", budget);
  EXPECT_TRUE(dfa.ok()) << pattern << ": " << (dfa.ok() ? "" : dfa.error().message);
  return dfa.ok() ? std::move(*dfa) : Dfa{};
}

std::string random_pattern(std::mt19937& rng, int depth) {
  const char* atoms[] = {"a", "b", "c", ".", "[ab]", "[^a]", "\\w", "\\x61"};
  switch (depth == 0 ? 0 : rng() % 7) {
    case 1:
      return random_pattern(rng, depth - 1) + random_pattern(rng, depth - 1);
    case 2:
      return "(" + random_pattern(rng, depth - 1) + "|" + random_pattern(rng, depth - 1) + ")";
    case 3:
      return "(?:" + random_pattern(rng, depth - 1) + ")*";
    case 4:
      return "(" + random_pattern(rng, depth - 1) + ")+?";
    case 5:
      return "(" + random_pattern(rng, depth - 1) + "){1,2}";
    case 6:
      return (rng() % 2 ? "^" : "") + random_pattern(rng, depth - 1) + (rng() % 2 ? "$" : "");
    default:
      return atoms[rng() % 8];
  }
}

// Against the standard library's, over all texts of up to four letters.
TEST(Regex, AgreesWithAnotherImplementation) {
  std::mt19937 rng(5);
  std::vector<std::string> all{""};
  for (std::size_t i = 0; all[i].size() < 4; ++i)
    for (char c : {'a', 'b', '-'}) all.push_back(all[i] + c);
  for (int i = 0; i < 150; ++i) {
    const std::string pattern = random_pattern(rng, 4);
    const std::regex oracle(pattern);
    const Dfa whole = compile(pattern), search = compile(pattern, Anchoring::kSearch);
    for (const std::string& text : all) {
      EXPECT_EQ(whole.accepts(text), std::regex_match(text, oracle)) << pattern << " on " << text;
      EXPECT_EQ(search.accepts(text), std::regex_search(text, oracle)) << pattern << " in " << text;
    }
  }
}

TEST(Regex, KnowsCharacters) {
  EXPECT_TRUE(compile(".").accepts("é") && compile("[а-я]").accepts("ж"));
  EXPECT_TRUE(compile("\\u{1F600}|\\uD83D\\uDE00").accepts("😀"));
  EXPECT_FALSE(compile(".").accepts("\xC3") || compile("[^a]").accepts("\xED\xA0\x80"));
  EXPECT_FALSE(compile(".").accepts("\n"));
  EXPECT_TRUE(compile("\\s").accepts("\xC2\xA0") && compile("[\\b]").accepts("\b"));
  EXPECT_TRUE(compile("a{,2}").accepts("a{,2}"));
}

TEST(Regex, RefusesByName) {
  EXPECT_THAT(refusal(regex("(?=a)")), HasSubstr("lookaround"));
  EXPECT_THAT(refusal(regex("(a)\\1")), HasSubstr("backreference"));
  EXPECT_THAT(refusal(regex("a\\b")), HasSubstr("word boundary"));
  EXPECT_THAT(refusal(regex("\\p{L}")), HasSubstr("\\p"));
  EXPECT_THAT(refusal(regex("a(")), HasSubstr("("));
  EXPECT_THAT(refusal(regex("a)")), HasSubstr(")"));
  EXPECT_THAT(refusal(regex("[a")), HasSubstr("["));
  EXPECT_THAT(refusal(regex("*")), HasSubstr("repeat"));
  EXPECT_THAT(refusal(regex("a**")), HasSubstr("quantifiers"));
  EXPECT_THAT(refusal(regex(std::string(60000, '('))), HasSubstr("nested"));
  EXPECT_THAT(refusal(regex("a{1000000000}")), HasSubstr("too large"));
  EXPECT_THAT(refusal(regex("(a|b)*a(a|b){40}")), HasSubstr("too large"));
  EXPECT_THAT(refusal(regex("[^\\s\\S]")), HasSubstr("no text"));
}

// ---- numbers

const std::vector<std::pair<std::string, double>>& numerals() {
  static const auto kAll = [] {
    std::vector<std::pair<std::string, double>> out;
    for (const char* text :
         {"0",   "-0",   "0.0",  "-0.0", "1",    "-1",    "1.0",   "9",    "10",   "-10",
          "11",  "99",   "100",  "101",  "0.1",  "0.10",  "0.09",  "0.2",  "-0.1", "-0.11",
          "1.5", "1.50", "1.49", "1.51", "-1.5", "-1.49", "12.25", "12.3", "12.2", "12.250",
          "120", "7",    "-7",   "70",   "1000", "0.5",   "2.5",   "1.05", "3.0"})
      out.emplace_back(text, std::stod(text));
    return out;
  }();
  return kAll;
}

Decimal decimal(const std::string& text) { return *to_decimal(parse(text)); }

TEST(Numerals, AreComparedDigitByDigit) {
  for (const char* text :
       {"0", "1", "-1", "10", "99", "1.5", "-1.5", "12.25", "-10", "0.1", "-0.1", "100"}) {
    Budget budget;
    const double b = std::stod(text);
    const Dfa below = *compared(decimal(text), true, false, false, budget);
    const Dfa at = *compared(decimal(text), false, true, false, budget);
    const Dfa above = *compared(decimal(text), false, false, true, budget);
    const Dfa least = *compared(decimal(text), false, true, true, budget);
    for (const auto& [numeral, value] : numerals()) {
      EXPECT_EQ(below.accepts(numeral), value < b) << numeral << " < " << text;
      EXPECT_EQ(at.accepts(numeral), value == b) << numeral << " = " << text;
      EXPECT_EQ(above.accepts(numeral), value > b) << numeral << " > " << text;
      EXPECT_EQ(least.accepts(numeral), value >= b) << numeral << " >= " << text;
    }
  }
}

TEST(Numerals, Multiples) {
  const std::pair<const char*, int> cases[] = {
      {"1", 1000}, {"7", 7000}, {"0.5", 500}, {"0.01", 10}, {"2.5", 2500}};
  for (auto [text, thousandths] : cases) {
    Budget budget;
    const Dfa dfa = *multiples(decimal(text), budget);
    for (const auto& [numeral, value] : numerals())
      EXPECT_EQ(dfa.accepts(numeral), std::llround(value * 1000) % thousandths == 0)
          << numeral << " by " << text;
  }
  Budget budget;
  EXPECT_FALSE(multiples(decimal("0.123456789"), budget).ok());
}

TEST(Numerals, DecimalsOfAnySize) {
  EXPECT_EQ(decimal("1e3").whole, "1000");
  EXPECT_EQ(decimal("-2.50").fraction, "5");
  EXPECT_EQ(decimal("1e-7").fraction, "0000001");
  EXPECT_EQ(decimal("18446744073709551615").whole, "18446744073709551615");
}

// ---- sets

TEST(Dfa, SetsBehaveLikeSets) {
  Budget budget;
  std::mt19937 rng(9);
  for (int i = 0; i < 40; ++i) {
    const Dfa a = compile(random_pattern(rng, 3)), b = compile(random_pattern(rng, 3));
    const Dfa both = *intersect(a, b, budget), any = *unite(a, b, budget),
              only = *subtract(a, b, budget);
    for (const char* text : {"", "a", "b", "c", "ab", "ba", "aab", "abc", "cc", "é", "abab"}) {
      EXPECT_EQ(both.accepts(text), a.accepts(text) && b.accepts(text));
      EXPECT_EQ(any.accepts(text), a.accepts(text) || b.accepts(text));
      EXPECT_EQ(only.accepts(text), a.accepts(text) && !b.accepts(text));
    }
  }
}

TEST(Dfa, MinimalAutomataAreSmall) {
  EXPECT_EQ(compile("(a|b)*abb").size(), 4u);
  EXPECT_EQ(compile("aaa|aba|bba|baa").size(), 4u);
  Budget budget;
  EXPECT_EQ(texts({"one", "two", "one"}, budget)->size(), 7u);
}

}  // namespace
}  // namespace vitrine::grammar
