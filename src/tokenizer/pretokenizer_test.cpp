#include "tokenizer/pretokenizer.h"

#include <gtest/gtest.h>

#include "tokenizer/load_json.h"

namespace vitrine {
namespace {

using Words = std::vector<std::string>;

Words words_of(const PreTokenizer& pre_tokenizer, std::string_view text, bool at_start = true) {
  Words words;
  pre_tokenizer.run(text, at_start, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

Words split(const std::string& json, std::string_view text, bool at_start = true) {
  PreTokenizer pre_tokenizer;
  bool byte_level = false;
  json::value value = json::parse(json);
  Status read = read_pre_tokenizer(value.as_object(), pre_tokenizer, byte_level);
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
  return words_of(pre_tokenizer, text, at_start);
}

TEST(PreTokenizer, SplitsWithEveryBehavior) {
  auto behave = [](const char* behavior, bool invert = false) {
    return split(std::string(R"({"type":"Split","pattern":{"String":"-"},"behavior":")") +
                     behavior + R"(","invert":)" + (invert ? "true}" : "false}"),
                 "The-final--countdown");
  };
  EXPECT_EQ(behave("Removed"), (Words{"The", "final", "countdown"}));
  EXPECT_EQ(behave("Isolated"), (Words{"The", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(behave("MergedWithPrevious"), (Words{"The-", "final-", "-", "countdown"}));
  EXPECT_EQ(behave("MergedWithNext"), (Words{"The", "-final", "-", "-countdown"}));
  EXPECT_EQ(behave("Contiguous"), (Words{"The", "-", "final", "--", "countdown"}));
  EXPECT_EQ(behave("Removed", true), (Words{"-", "-", "-"}));
}

TEST(PreTokenizer, SplitsByKind) {
  EXPECT_EQ(split(R"({"type":"Digits","individual_digits":true})", "a12b"),
            (Words{"a", "1", "2", "b"}));
  EXPECT_EQ(split(R"({"type":"Digits","individual_digits":false})", "a12b"),
            (Words{"a", "12", "b"}));
  EXPECT_EQ(split(R"({"type":"Punctuation"})", "a,+b。"), (Words{"a", ",", "+", "b", "。"}));
  EXPECT_EQ(split(R"({"type":"Whitespace"})", "Hi, you! é_1"),
            (Words{"Hi", ",", "you", "!", "é_1"}));
  EXPECT_EQ(split(R"({"type":"WhitespaceSplit"})", " a\t\u00A0b\n"), (Words{"a", "b"}));
  EXPECT_EQ(split(R"({"type":"BertPreTokenizer"})", "it's 5$"), (Words{"it", "'", "s", "5", "$"}));
  EXPECT_EQ(split(R"({"type":"CharDelimiterSplit","delimiter":"x"})", "axxb"), (Words{"a", "b"}));
  EXPECT_EQ(split(R"({"type":"FixedLength","length":2})", "aébcd"), (Words{"aé", "bc", "d"}));
}

TEST(PreTokenizer, MarksSpacesAsMetaspace) {
  auto meta = [](const char* scheme, std::string_view text, bool at_start = true) {
    return split(
        std::string(R"({"type":"Metaspace","replacement":"▁","prepend_scheme":")") + scheme + "\"}",
        text, at_start);
  };
  EXPECT_EQ(meta("always", "a b"), (Words{"▁a", "▁b"}));
  EXPECT_EQ(meta("always", " a  b"), (Words{"▁a", "▁", "▁b"}));
  EXPECT_EQ(meta("never", "a b"), (Words{"a", "▁b"}));
  EXPECT_EQ(meta("first", "a b"), (Words{"▁a", "▁b"}));
  EXPECT_EQ(meta("first", "a b", false), (Words{"a", "▁b"}));
  EXPECT_EQ(
      split(R"({"type":"Metaspace","replacement":"_","add_prefix_space":false,"split":false})",
            "a b"),
      Words{"a_b"});
}

TEST(PreTokenizer, ChainsSteps) {
  EXPECT_EQ(split(R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},
                      {"type":"Digits","individual_digits":true},
                      {"type":"ByteLevel","add_prefix_space":true,"use_regex":false},
                      {"type":"Split","pattern":{"String":"Ġ"},"behavior":"MergedWithNext"}]})",
                  "ab1 é"),
            (Words{"Ġab", "Ġ1", "ĠÃ©"}));
}

TEST(PreTokenizer, LooksAheadOnlyWithinAWord) {
  PreTokenizer words;
  ASSERT_TRUE(words.add_regex(R"(\p{N})", SplitBehavior::kIsolated, false).ok());
  ASSERT_TRUE(words.add_regex(kGpt2Pattern, SplitBehavior::kIsolated, false).ok());
  EXPECT_EQ(words_of(words, "a  7"), (Words{"a", "  ", "7"}));
  PreTokenizer whole;
  ASSERT_TRUE(whole.add_regex(kGpt2Pattern, SplitBehavior::kIsolated, false).ok());
  EXPECT_EQ(words_of(whole, "a  7"), (Words{"a", " ", " 7"}));
}

}  // namespace
}  // namespace vitrine
