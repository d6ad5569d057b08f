// No text makes a tokenizer do more than linear work. The texts are so long that quadratic work on
// one of them (10^12 steps) does not end within ctest's limit, while linear work takes no second.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tokenizer/test_support.h"

namespace vitrine {
namespace {

constexpr std::size_t kSize = 1 << 20;

std::string repeat(std::string_view unit) {
  std::string text;
  while (text.size() < kSize) text += unit;
  return text;
}

void expect_ends(const Tokenizer& tokenizer, const std::string& text, std::string_view name) {
  SCOPED_TRACE(name);
  Ids ids = tokenizer.encode(text);
  std::string back = tokenizer.decode(ids);
  EXPECT_FALSE(ids.empty() && back.empty() && text[0] == 'a');
}

const char* const kUnits[] = {"A",  " ", "\n", "7",   ".",   "中", "\u0301", "\u0301\u0316",
                              "us", "é", "aA", "A中", " \n", "x ", "\xFF",   "</s>"};

class LinearTime : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, LinearTime, testing::ValuesIn(kFixtureNames));

TEST_P(LinearTime, ForRepeatedText) {
  auto tokenizer = fixture_tokenizer(GetParam());
  for (const char* unit : kUnits) expect_ends(*tokenizer, repeat(unit), unit);
  expect_ends(*tokenizer, repeat(" ") + "x", "spaces and a letter");
  expect_ends(*tokenizer, repeat("7") + "x", "digits and a letter");
}

// Every pattern that is not on a scanner, and some made to be slow.
TEST(LinearTimePatterns, ForAnyPattern) {
  for (const char* pattern :
       {R"((?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\s+)", R"((a+)+b)", R"(\\s+$|x)", R"(a*b|A*B)",
        R"(\\p{Lu}*\\p{Ll}+)", R"((?=(\\d{3})+(?!\\d)))", R"(\\s{16}(?!\\S)|\\s{1,2}(?!\\S)|\\S+)",
        R"([\\p{Lu}&&[^A-M]]+|.)", R"((?:.|\\n)*?z)"}) {
    auto tokenizer = make_tokenizer(fmt::format(
        R"({{"pre_tokenizer":{{"type":"Sequence","pretokenizers":[
             {{"type":"Split","pattern":{{"Regex":"{}"}},"behavior":"Isolated"}},
             {{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}}]}},
            "decoder":{{"type":"ByteLevel"}},
            "model":{{"type":"BPE","vocab":{{"a":0,"aa":1,"A":2}},"merges":["a a"]}}}})",
        pattern));
    ASSERT_NE(tokenizer, nullptr);
    for (const char* unit : {"a", "A", " ", "7", "a ", "\u0301", "\n"})
      expect_ends(*tokenizer, repeat(unit) + "!", pattern);
  }
}

TEST(LinearTimeTokens, ForTokensThatNest) {
  // Every run of "a" up to 300 is a token, an added token, and merges grow one at a time.
  std::string vocab = R"("a":0)", merges, added, scored = R"(["a",-1.0])";
  std::string run = "a";
  for (int n = 1; n < 300; ++n) {
    merges += fmt::format(R"({}["{}","a"])", n > 1 ? "," : "", run);
    run += 'a';
    vocab += fmt::format(R"(,"{}":{})", run, n);
    scored += fmt::format(R"(,["{}",-{}.5])", run, n);
    added += fmt::format(R"({}{{"id":{},"content":"{}b","normalized":false}})", n > 1 ? "," : "",
                         400 + n, run);
  }
  std::string text = repeat("a");
  auto bpe = make_tokenizer(fmt::format(
      R"({{"added_tokens":[{}],"model":{{"type":"BPE","vocab":{{{}}},"merges":[{}]}}}})", added,
      vocab, merges));
  expect_ends(*bpe, text, "nested merges");
  auto unigram = make_tokenizer(
      fmt::format(R"({{"model":{{"type":"Unigram","vocab":[{}],"unk_id":0}}}})", scored));
  expect_ends(*unigram, text, "nested pieces");
  auto words = make_tokenizer(fmt::format(
      R"({{"model":{{"type":"WordPiece","unk_token":"a","max_input_chars_per_word":1000000000,
           "continuing_subword_prefix":"","vocab":{{{}}}}}}})",
      vocab));
  expect_ends(*words, text, "nested word pieces");
}

}  // namespace
}  // namespace vitrine
