#include "tokenizer/text_stream.h"

#include <random>

#include "base/utf8.h"
#include "tokenizer/test_support.h"

namespace vitrine {
namespace {

std::shared_ptr<const StopStrings> stops(std::vector<std::string> list) {
  auto made = StopStrings::make(std::move(list), "stop");
  EXPECT_TRUE(made.ok()) << made.error().message;
  return *made;
}

const Tokenizer& tokenizer() {
  static const std::unique_ptr<Tokenizer> kTokenizer = fixture_tokenizer("byte_bpe");
  return *kTokenizer;
}

// One token per byte, so that every border is a token border.
Ids byte_ids(const std::string& text) {
  Ids ids;
  for (std::size_t i = 0; i < text.size();) {
    int n = utf8_next(std::string_view(text).substr(i)).length;
    for (std::int32_t id : tokenizer().encode(text.substr(i, n), kPlain)) ids.push_back(id);
    i += n;
  }
  return ids;
}

struct Outcome {
  std::string text, matched;
  int tokens;
  bool operator==(const Outcome&) const = default;
};

Outcome run(const Ids& ids, std::vector<std::string> list, int min_tokens = 0) {
  TextStream stream(tokenizer(), Ids{1}, stops(std::move(list)), min_tokens);
  std::string text;
  for (std::int32_t id : ids) text += stream.push(id);
  text += stream.finish();
  return {text, stream.matched() ? *stream.matched() : "", stream.tokens()};
}

// The definition: the match that ends first, then the longest.
Outcome naive(const std::string& text, const std::vector<std::string>& list) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    const std::string* best = nullptr;
    for (const std::string& stop : list)
      if (text.substr(0, end).ends_with(stop) && (!best || best->size() < stop.size()))
        best = &stop;
    if (best) return {text.substr(0, end - best->size()), *best, 0};
  }
  return {text, "", 0};
}

TEST(TextStream, WithoutStopsItIsTheStreamDecoder) {
  Ids ids = tokenizer().encode("Hello wörld, 日本 🎉!", kPlain);
  EXPECT_EQ(run(ids, {}), (Outcome{"Hello wörld, 日本 🎉!", "", static_cast<int>(ids.size())}));
}

TEST(TextStream, AStopAcrossTokensEndsTheTextAtTheTokenThatCompletesIt) {
  EXPECT_EQ(run(byte_ids("abc###def"), {"###"}), (Outcome{"abc", "###", 6}));
  EXPECT_EQ(run(byte_ids("ab##c###d"), {"###"}), (Outcome{"ab##c", "###", 8}));
  EXPECT_EQ(run(byte_ids("stop"), {"stop"}), (Outcome{"", "stop", 4}));
  EXPECT_EQ(run(byte_ids("abc##"), {"###"}), (Outcome{"abc##", "", 5}));
}

TEST(TextStream, WhatMayBeginAStopIsHeldBack) {
  TextStream stream(tokenizer(), Ids{1}, stops({"\n\nUser:"}));
  std::vector<std::string> parts;
  for (std::int32_t id : byte_ids("a\n\nUs x")) parts.push_back(stream.push(id));
  EXPECT_EQ(parts, (std::vector<std::string>{"a", "", "", "", "", "\n\nUs ", "x"}));
  EXPECT_FALSE(stream.stopped());
  for (std::int32_t id : byte_ids("\n\nUs")) EXPECT_EQ(stream.push(id), "");
  EXPECT_EQ(stream.finish(), "\n\nUs");
}

TEST(TextStream, TheMatchThatEndsFirstWinsThenTheLongest) {
  EXPECT_EQ(run(byte_ids("xabcd"), {"abcd", "c"}), (Outcome{"xab", "c", 4}));
  EXPECT_EQ(run(byte_ids("xabc"), {"c", "abc", "bc"}), (Outcome{"x", "abc", 4}));
}

TEST(TextStream, NothingComesAfterAStop) {
  TextStream stream(tokenizer(), Ids{1}, stops({"b"}));
  std::string text;
  for (std::int32_t id : byte_ids("abab")) text += stream.push(id);
  EXPECT_EQ(text + stream.finish(), "a");
  EXPECT_EQ(stream.tokens(), 2);
}

TEST(TextStream, BeforeMinTokensAStopIsText) {
  EXPECT_EQ(run(byte_ids("a.b.c"), {"."}, 3), (Outcome{"a.b", ".", 4}));
  EXPECT_EQ(run(byte_ids("a.b.c"), {"."}, 4), (Outcome{"a.b", ".", 4}));
  EXPECT_EQ(run(byte_ids("a.b.c"), {"."}, 5), (Outcome{"a.b.c", "", 5}));
}

TEST(TextStream, ManyByteCharactersAreMatchedWhole) {
  EXPECT_EQ(run(byte_ids("è日é本"), {"é"}).text, "è日");
  EXPECT_EQ(run(byte_ids("日本語"), {"本語x"}).text, "日本語");
}

TEST(TextStream, AnyTextAnyStopsAnyTokensAreAsTheDefinitionSays) {
  std::mt19937 rng(5);
  auto word = [&](int length) {
    std::string out;
    for (int i = 0; i < length; ++i) out += "ab\n"[rng() % 3];
    return out;
  };
  for (int round = 0; round < 3000; ++round) {
    std::string text = word(1 + static_cast<int>(rng() % 30));
    std::vector<std::string> list;
    for (std::size_t n = rng() % 4; n > 0; --n)
      list.push_back(word(1 + static_cast<int>(rng() % 6)));
    Outcome expected = naive(text, list);
    for (const Ids& ids : {byte_ids(text), tokenizer().encode(text, kPlain)}) {
      Outcome got = run(ids, list);
      EXPECT_EQ(got.text, expected.text) << text;
      EXPECT_EQ(got.matched, expected.matched) << text;
    }
  }
}

TEST(TextStream, LongStopsThatShareTheirBeginning) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < StopStrings::kMaxStops; ++i)
    list.push_back(std::string(StopStrings::kMaxBytes - 1 - i, 'a') + "b");
  TextStream stream(tokenizer(), Ids{1}, stops(list));
  std::int32_t a = byte_ids("a")[0], b = byte_ids("b")[0], c = byte_ids("c")[0];
  std::string text;
  for (int i = 0; i < 100000; ++i) text += stream.push(i % 1001 == 1000 ? c : a);
  EXPECT_FALSE(stream.stopped());
  for (int i = 0; i < 3000; ++i) text += stream.push(a);
  text += stream.push(b);
  ASSERT_TRUE(stream.stopped());
  EXPECT_EQ(*stream.matched(), list[0]);
  EXPECT_EQ(text.size(), 103000 - (list[0].size() - 1));
}

TEST(TextStream, BadStopsAreRefusedByName) {
  auto message = [](std::vector<std::string> list) {
    auto made = StopStrings::make(std::move(list), "stop");
    return made.ok() ? "" : made.error().message;
  };
  EXPECT_EQ(message(std::vector<std::string>(StopStrings::kMaxStops, "x")), "");
  EXPECT_EQ(message(std::vector<std::string>(17, "x")), "stop: found 17 strings, allowed up to 16");
  EXPECT_EQ(message({std::string(1024, 'x')}), "");
  EXPECT_EQ(message({std::string(1025, 'x')}),
            "stop: found a string of 1025 bytes, allowed 1 to 1024");
  EXPECT_EQ(message({""}), "stop: found a string of 0 bytes, allowed 1 to 1024");
  EXPECT_EQ(message({"\xff"}), "stop: found bytes that are not UTF-8, allowed text");
}

}  // namespace
}  // namespace vitrine
