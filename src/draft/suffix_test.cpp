#include "draft/suffix.h"

#include <gtest/gtest.h>

#include <random>

#include "support/allocation_count.h"

namespace vitrine {
namespace {

using Tokens = std::vector<std::int32_t>;

Tokens drafted(DraftSource& source, const Tokens& tokens, int most = 16) {
  std::vector<Guess> out(most);
  out.resize(source.draft(tokens, out));
  Tokens ids;
  for (const Guess& guess : out) ids.push_back(guess.token);
  return ids;
}

Tokens range(int first, int last) {
  Tokens out;
  for (int i = first; i < last; ++i) out.push_back(i);
  return out;
}

Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void learn_all(SharedSuffixes& shared) {
  while (shared.learn(100)) {
  }
}

TEST(Suffix, KnowsItsOwnText) {
  SuffixSource source({}, nullptr);
  source.begin("");
  EXPECT_EQ(drafted(source, {}), Tokens{});
  EXPECT_EQ(drafted(source, range(0, 30)), Tokens{});
  EXPECT_EQ(drafted(source, range(0, 30) + range(5, 9)), range(9, 13)) << "as many as matched";
  source.begin("");
  EXPECT_EQ(drafted(source, range(5, 9)), Tokens{}) << "another sequence";
}

TEST(Suffix, ChunksAreAsGoodAsAll) {
  std::mt19937 rng(1);
  Tokens text;
  for (int i = 0; i < 3000; ++i)
    text.push_back(i > 100 && rng() % 20 ? text[i - 90] : static_cast<std::int32_t>(rng() % 9));
  SuffixSource steps({}, nullptr), whole({}, nullptr);
  steps.begin("");
  for (std::size_t size = 0; size <= text.size(); size += rng() % 100) {
    const Tokens part(text.begin(), text.begin() + size);
    whole.begin("");
    std::vector<Guess> a(16), b(16);
    steps.extend(part);
    a.resize(steps.draft(part, a)), b.resize(whole.draft(part, b));
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].token, b[i].token);
      EXPECT_EQ(a[i].probability, b[i].probability);
      EXPECT_LE(a[i].probability, i > 0 ? a[i - 1].probability : 1);
    }
  }
}

TEST(Suffix, LearnsFromPastOutputsOfItsScope) {
  SharedSuffixes shared(1 << 20);
  SuffixSource one({}, &shared), two({}, &shared), other({}, &shared);
  one.begin("key"), two.begin("key"), other.begin("key\nsalt");
  one.finish(range(100, 130));
  EXPECT_EQ(drafted(two, range(98, 104)), Tokens{}) << "it waits";
  EXPECT_TRUE(shared.learn(29));
  EXPECT_FALSE(shared.learn(1));
  EXPECT_EQ(drafted(two, range(98, 104)), range(104, 108));
  EXPECT_EQ(drafted(other, range(98, 104)), Tokens{}) << "another scope";
}

TEST(Suffix, ItsOwnTextWinsWhenBothAreAsSure) {
  SharedSuffixes shared(1 << 20);
  SuffixSource source({}, &shared);
  source.begin("");
  source.finish({{1, 2, 7}});
  source.finish({{0, 1, 2, 8}});
  source.finish({{0, 1, 2, 8}});
  learn_all(shared);
  EXPECT_EQ(drafted(source, {1, 2, 9, 1, 2}, 1), Tokens{9});
  source.begin("");
  EXPECT_EQ(drafted(source, {3, 1, 2, 9, 3, 1, 2, 4, 0, 1, 2}, 1), Tokens{8})
      << "three of three are better than one of two";
}

TEST(Suffix, TheOldestAreForgotten) {
  SharedSuffixes shared(400'000);
  EXPECT_LE(shared.bytes(), 400'000u);
  SuffixSource source({}, &shared);
  constexpr int kOutputs = 1000, kLength = 50;
  const std::size_t before = shared.bytes();
  for (int i = 0; i < kOutputs; ++i) {
    shared.add(suffix_scope("a"), range(i * kLength, (i + 1) * kLength));
    learn_all(shared);
  }
  EXPECT_EQ(shared.bytes(), before);
  EXPECT_EQ(shared.dropped(), 0u);
  int known = 0;
  for (int i = 0; i < kOutputs; ++i) {
    source.begin("a");
    const bool knows = !drafted(source, range(i * kLength, i * kLength + 8)).empty();
    EXPECT_GE(knows, known > 0) << "those after it are known";
    known += knows;
  }
  EXPECT_GT(known, 40) << "about half of 400,000 bytes at some 80 for a token";
  EXPECT_LT(known, 150);
}

// Where nobody has time to learn, and where there is next to no memory.
TEST(Suffix, OutputsWaitInBoundedMemory) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{200'000}}) {
    SharedSuffixes shared(bytes);
    SuffixSource source({.local_bytes = 0}, &shared);
    std::mt19937 rng(2);
    EXPECT_LE(shared.bytes(), std::max(bytes, SharedSuffixes::kLeastBytes));
    EXPECT_LE(source.bytes(), SuffixHistory::kLeastBytes);
    const std::size_t before = allocation_count(), held = shared.bytes() + source.bytes();
    source.begin("a");
    std::array<std::int32_t, 300> output;
    std::array<Guess, 40> out;
    for (int i = 0; i < 3000; ++i) {
      for (std::int32_t& token : output) token = static_cast<std::int32_t>(rng() % 3);
      source.begin("a");
      source.draft(output, out);
      source.finish(std::span(output).first(rng() % output.size()));
      shared.learn(static_cast<int>(rng() % 100));
    }
    EXPECT_EQ(allocation_count(), before);
    EXPECT_EQ(shared.bytes() + source.bytes(), held);
    EXPECT_GT(shared.dropped(), 0u);
    learn_all(shared);
    shared.add(suffix_scope("b"), range(0, 20));
    learn_all(shared);
    source.begin("b");
    EXPECT_EQ(drafted(source, range(5, 9), 1), Tokens{9}) << "it goes on learning";
  }
}

}  // namespace
}  // namespace vitrine
