#include "draft/ngram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/allocation_count.h"

namespace vitrine {
namespace {

using Tokens = std::vector<std::int32_t>;

Tokens random_text(int size, int vocab, unsigned seed) {
  std::mt19937 rng(seed);
  Tokens out(size);
  for (auto& token : out) token = static_cast<std::int32_t>(rng() % vocab);
  return out;
}

Tokens drafted(DraftSource& source, std::span<const std::int32_t> tokens, int most) {
  std::vector<Guess> out(most);
  out.resize(source.draft(tokens, out));
  Tokens ids;
  for (const Guess& guess : out) ids.push_back(guess.token);
  return ids;
}

// By definition: looks at every place in the text.
Tokens naive(std::span<const std::int32_t> tokens, const NgramOptions& options, int most) {
  const int size = static_cast<int>(tokens.size());
  for (int n = std::min(options.max_n, size); n >= options.min_n; --n)
    for (int end = size - 1; end >= n && end >= size - options.window; --end) {
      if (!std::ranges::equal(tokens.subspan(end - n, n), tokens.last(n))) continue;
      Tokens text(tokens.begin(), tokens.end());
      for (int i = 0; i < most; ++i) text.push_back(text[end + i]);
      return {text.end() - most, text.end()};
    }
  return {};
}

TEST(Ngram, GuessesWhatFollowedTheLastTime) {
  NgramSource source({.min_n = 2, .max_n = 3});
  EXPECT_EQ(drafted(source, Tokens{}, 3), Tokens{});
  const Tokens text = {1, 2, 3, 4, 9, 2, 3, 5, 6, 8, 2, 3};
  EXPECT_EQ(drafted(source, text, 3), (Tokens{5, 6, 8}));
  EXPECT_EQ(drafted(source, text, 0), Tokens{});
  source.begin("");
  EXPECT_EQ(drafted(source, Tokens{1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3}, 1), Tokens{4})
      << "three tokens count for more than two";
}

TEST(Ngram, GoesRoundAtTheEnd) {
  NgramSource source({.min_n = 1, .max_n = 3});
  EXPECT_EQ(drafted(source, Tokens{7, 7}, 4), (Tokens{7, 7, 7, 7}));
  source.begin("");
  EXPECT_EQ(drafted(source, Tokens{5, 6, 5, 6, 5}, 5), (Tokens{6, 5, 6, 5, 6}));
}

TEST(Ngram, LongerMatchesAreSurer) {
  NgramSource source({.min_n = 1, .max_n = 3});
  std::vector<Guess> one(3), three(3);
  ASSERT_EQ(source.draft(Tokens{1, 2, 3, 4, 1, 2, 3}, three), 3);
  source.begin("");
  ASSERT_EQ(source.draft(Tokens{1, 2, 3, 4, 3}, one), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_LT(one[i].probability, three[i].probability);
    EXPECT_LT(three[i].probability, i > 0 ? three[i - 1].probability : 1);
  }
}

TEST(Ngram, EqualsTheDefinition) {
  std::vector<Tokens> texts = {
      Tokens(300, 5), {}, random_text(400, 2, 1), random_text(400, 4, 2), random_text(400, 60, 3)};
  for (int i = 0; i < 300; ++i) texts[1].push_back(i % 2);
  Tokens copy = random_text(150, 40, 4);  // with edits
  for (int i = 0; i < 300; ++i) copy.push_back(i % 37 == 0 ? 1 : copy[copy.size() - 150]);
  texts.push_back(copy);
  for (const NgramOptions options : {NgramOptions{2, 4, 1 << 10}, NgramOptions{1, 1, 50},
                                     NgramOptions{1, 5, 7}, NgramOptions{3, 3, 1}}) {
    NgramSource steps(options);  // one text after the other, token by token
    for (const Tokens& text : texts) {
      steps.begin("");
      for (std::size_t size = 0; size <= text.size(); ++size) {
        const auto tokens = std::span(text).first(size);
        const Tokens expected = naive(tokens, options, 6);
        ASSERT_EQ(drafted(steps, tokens, 6), expected) << size;
        if (size % 50 != 0) continue;
        NgramSource whole(options);
        ASSERT_EQ(drafted(whole, tokens, 6), expected) << size;
      }
    }
  }
}

TEST(Ngram, NeedsNoMemoryOnceItIsThere) {
  NgramSource source({.min_n = 2, .max_n = 4, .window = 64});
  EXPECT_EQ(source.bytes(), 3u * 256 * 4);
  const Tokens text = random_text(5000, 3, 6);
  std::vector<Guess> out(8);
  const std::size_t before = allocation_count();
  for (std::size_t size = 1; size <= text.size(); ++size)
    source.draft(std::span(text).first(size), out);
  EXPECT_EQ(allocation_count(), before);
}

}  // namespace
}  // namespace vitrine
