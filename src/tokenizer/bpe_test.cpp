#include "tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <random>

namespace vitrine {
namespace {

using Ids = std::vector<std::int32_t>;

// Tokens over {a, b, c} that grow by random merges; both models are checked against the definition.
struct Random {
  Vocab vocab;
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<float> scores;
  std::mt19937 random;

  explicit Random(unsigned seed) : random(seed) {
    std::vector<std::string> tokens = {"a", "b", "c"};
    for (int i = 0; i < 25; ++i) {
      std::string left = tokens[random() % tokens.size()], right = tokens[random() % tokens.size()];
      if (left.size() + right.size() > 12) continue;
      merges.emplace_back(left, right);
      if (std::find(tokens.begin(), tokens.end(), left + right) == tokens.end())
        tokens.push_back(left + right);
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      vocab.set(static_cast<std::int32_t>(i), tokens[i], TokenKind::kNormal);
      scores.push_back(static_cast<float>(static_cast<int>(random() % 9) - 4));  // many ties
    }
  }
  std::string word(std::size_t length) {
    std::string text;
    for (std::size_t i = 0; i < length; ++i) text += static_cast<char>('a' + random() % 3);
    return text;
  }
};

// Merges the best pair, leftmost of equals, until none is left; `rank` is lower for better, -1
// none.
template <typename Rank>
Ids merge_by_definition(const Vocab& vocab, const std::string& word, Rank&& rank) {
  std::vector<std::string> parts;
  for (char c : word) parts.emplace_back(1, c);
  for (;;) {
    std::size_t best = 0;
    double best_rank = 0;
    bool found = false;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      std::optional<double> r = rank(parts[i], parts[i + 1]);
      if (r && (!found || *r < best_rank)) {
        found = true;
        best = i;
        best_rank = *r;
      }
    }
    if (!found) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const std::string& part : parts) ids.push_back(vocab.find(part));
  return ids;
}

// Short words take one queue, long words the other.
constexpr std::size_t kLengths[] = {0, 1, 2, 3, 7, 20, 511, 512, 700};

TEST(Bpe, MergesByRankThenLeftmost) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    Random model(seed);
    Bpe bpe(model.vocab, {});
    for (std::size_t i = 0; i < model.merges.size(); ++i)
      ASSERT_TRUE(bpe.add_merge(model.merges[i].first, model.merges[i].second,
                                static_cast<std::uint32_t>(i), false));
    for (std::size_t length : kLengths) {
      std::string word = model.word(length);
      Ids wanted = merge_by_definition(
          model.vocab, word,
          [&](const std::string& left, const std::string& right) -> std::optional<double> {
            for (std::size_t i = 0; i < model.merges.size(); ++i)
              if (model.merges[i].first == left && model.merges[i].second == right)
                return static_cast<double>(i);
            return std::nullopt;
          });
      WordScratch scratch;
      Ids found;
      bpe.encode(word, scratch, found);
      ASSERT_EQ(found, wanted) << "seed " << seed << ", length " << length;
    }
  }
}

TEST(ScoreBpe, MergesByScoreThenLeftmost) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    Random model(seed);
    ScoreBpe bpe(model.vocab, model.scores, kNoToken);
    for (std::size_t length : kLengths) {
      std::string word = model.word(length);
      Ids wanted = merge_by_definition(
          model.vocab, word,
          [&](const std::string& left, const std::string& right) -> std::optional<double> {
            std::int32_t id = model.vocab.find(left + right);
            if (id == kNoToken) return std::nullopt;
            return -model.scores[static_cast<std::size_t>(id)];
          });
      WordScratch scratch;
      Ids found;
      bpe.encode(word, scratch, found);
      ASSERT_EQ(found, wanted) << "seed " << seed << ", length " << length;
    }
  }
}

TEST(ScoreBpe, WordByWordIsTheSameAsWhole) {
  Vocab split, whole;
  std::vector<float> scores;
  const char* tokens[] = {"▁", "a", "b", "▁a", "▁▁", "ab", "▁ab", "▁▁▁▁", "▁▁a"};
  for (std::int32_t i = 0; i < 9; ++i) {
    split.set(i, tokens[i], TokenKind::kNormal);
    whole.set(i, tokens[i], TokenKind::kNormal);
    scores.push_back(static_cast<float>(-i));
  }
  // A token with a mark inside that no text contains turns the shortcut off.
  whole.set(9, "z▁z", TokenKind::kNormal);
  scores.push_back(0);
  ScoreBpe by_words(split, scores, kNoToken), by_text(whole, scores, kNoToken);
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (std::size_t n = random() % 30; n > 0; --n) text += tokens[random() % 3];
    WordScratch scratch;
    Ids a, b;
    by_words.encode(text, scratch, a);
    by_text.encode(text, scratch, b);
    ASSERT_EQ(a, b) << text;
  }
}

TEST(Bpe, NeverMergesIntoASpecialToken) {
  Vocab vocab;
  vocab.set(0, "a", TokenKind::kNormal);
  vocab.set(1, "b", TokenKind::kNormal);
  vocab.set(2, "ab", TokenKind::kControl);
  Bpe bpe(vocab, {});
  EXPECT_TRUE(bpe.add_merge("a", "b", 0, false));
  WordScratch scratch;
  Ids ids;
  bpe.encode("ab", scratch, ids);
  EXPECT_EQ(ids, (Ids{0, 1}));
}

TEST(ByteLevel, SpellsEveryByte) {
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  std::string back;
  EXPECT_TRUE(byte_level_decode(byte_level_encode(all), back));
  EXPECT_EQ(back, all);
  EXPECT_EQ(byte_level_encode(" \n"), "ĠĊ");
  EXPECT_FALSE(byte_level_decode("日", back));
  EXPECT_EQ(back, all);
}

TEST(ByteTokens, AreReadStrictly) {
  EXPECT_EQ(byte_token_value("<0x0A>"), 10);
  EXPECT_EQ(byte_token_value("<0xff>"), 255);
  for (const char* bad : {"<0x-1>", "<0xZZ>", "<0x1>", "<0x100>", "<0x0A", "0x0A", "", "<0X0A>"})
    EXPECT_EQ(byte_token_value(bad), -1) << bad;
}

}  // namespace
}  // namespace vitrine
