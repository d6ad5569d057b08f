// Tokenizer::explain: its steps, done again by their definitions, give exactly `encode`'s ids.
#include <random>

#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/bpe.h"
#include "tokenizer/explanation.h"
#include "tokenizer/test_support.h"

namespace vitrine {
namespace {

std::vector<std::string> odd_texts() {
  std::string letters(3000, 'a');
  for (std::size_t i = 0; i < letters.size(); i += 7) letters[i] = "bcdxyz "[i % 6];
  return {"",
          "a",
          "   ",
          "the cat and the cats",
          "she sells  sea\n\nshells\t!",
          "👩‍👩‍👧‍👦 🦊🇮🇱 emoji",
          "שלום עולם, مرحبا بالعالم",
          "é e\u0301 ﬁ Å ½ 漢字 \u3000 x",
          std::string("nul\0here", 8),
          "broken \xff\xc3 \xe2\x82 \xf0\x9f\x98 end\xc0\x80",
          std::string(2000, 'z'),
          letters,
          std::string(900, '!') + "的" + std::string(900, ' '),
          "<s>a</s><|im_start|>user<|im_end|>[CLS] [SEP] [MASK]<unk><pad>"};
}

Ids merged(const ExplainedWord& word) {
  // Symbols by the place of their first start symbol; a merge takes the right one away.
  std::vector<std::int32_t> ids;
  std::vector<bool> there(word.start.size(), true);
  for (const PlacedToken& symbol : word.start) ids.push_back(symbol.id);
  for (const DoneMerge& merge : word.merges) {
    EXPECT_LT(merge.left, merge.right);
    EXPECT_TRUE(there.at(merge.left) && there.at(merge.right));
    for (std::size_t i = merge.left + 1; i < merge.right; ++i)
      EXPECT_FALSE(there[i]) << "not neighbours";
    there[merge.right] = false;
    ids[merge.left] = merge.id;
  }
  Ids out;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (there[i]) out.push_back(ids[i]);
  return out;
}

// What holds of every explanation.
void check(const Tokenizer& tokenizer, const std::string& text, EncodeOptions options) {
  auto told = tokenizer.explain(text, options);
  ASSERT_TRUE(told.ok()) << told.error().message;
  ASSERT_EQ(told->ids(), tokenizer.encode(text, options)) << text;
  EXPECT_TRUE(utf8_valid(told->normalized));
  const std::size_t size = (utf8_valid(text) ? text : utf8_sanitize(text)).size();
  std::size_t at = 0, tokens = 0;
  for (const ExplainedWord& word : told->words) {
    EXPECT_GE(word.begin, at);
    EXPECT_LE(word.end, told->normalized.size());
    at = word.end;
    std::size_t inside = word.begin;
    for (const PlacedToken& token : word.tokens) {
      EXPECT_GE(token.begin, inside);
      EXPECT_GE(token.end, token.begin);
      EXPECT_LE(token.end, word.end);
      inside = token.end;
    }
    tokens += word.tokens.size();
    Ids ids;
    for (const PlacedToken& token : word.tokens) ids.push_back(token.id);
    if (word.way == WordWay::kMerges && tokenizer.kind() != "SentencePiece BPE") {
      EXPECT_EQ(merged(word), ids);
    }
    if (word.way == WordWay::kAdded) {
      EXPECT_EQ(ids.size(), 1u);
    }
    double total = 0;
    std::size_t place = word.begin;
    for (const TokenCandidate& candidate : word.candidates) {
      if (!candidate.chosen) continue;
      EXPECT_EQ(candidate.begin, place);
      total += candidate.score;
      EXPECT_NEAR(candidate.total, total, 1e-6 * std::abs(total));
      place = candidate.end;
    }
    if (word.way == WordWay::kLattice) {
      EXPECT_EQ(place, word.end);
    }
  }
  ASSERT_EQ(told->sources.size(), tokens);
  for (const PlacedToken& source : told->sources) {
    EXPECT_LE(source.begin, source.end);
    EXPECT_LE(source.end, size);
  }
}

class Explain : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Explain, testing::ValuesIn(kFixtureNames));

TEST_P(Explain, GivesTheIdsOfTheFixtures) {
  auto tokenizer = fixture_tokenizer(GetParam());
  auto vectors = parse_json(fixture_text(GetParam(), "vectors.json"), "vectors").value();
  for (const json::value& vector : vectors.as_array())
    for (bool parse : {false, true})
      check(*tokenizer, std::string(vector.at("text").as_string()), {parse, parse});
}

TEST_P(Explain, GivesTheIdsOfOddTexts) {
  auto tokenizer = fixture_tokenizer(GetParam());
  for (const std::string& text : odd_texts())
    for (bool add : {false, true})
      for (bool parse : {false, true}) check(*tokenizer, text, {add, parse});
}

TEST_P(Explain, GivesTheIdsOfAnyBytes) {
  auto tokenizer = fixture_tokenizer(GetParam());
  std::mt19937 random(3);
  for (int round = 0; round < 400; ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % (round % 2 ? 256 : 128));
    check(*tokenizer, bytes, {round % 3 == 0, round % 5 == 0});
  }
}

TEST_P(Explain, SaysWhichBytesOfATemplateBecameWhichTokens) {
  auto tokenizer = fixture_tokenizer(GetParam());
  std::string marker;
  for (std::int32_t id = 0; marker.empty(); ++id)
    if (tokenizer->is_special(id) && id != tokenizer->unk()) marker = tokenizer->piece(id);
  const std::string text = marker + "the " + marker + " cat" + marker;
  // The second is the caller's, so it is no special token.
  const std::vector<ByteSpan> words{{marker.size() + 4, 2 * marker.size() + 4}};
  auto told = tokenizer->place(text, kPlain, words);
  ASSERT_TRUE(told.ok()) << told.error().message;
  EXPECT_EQ(told->ids(), tokenizer->encode(text, kPlain, words));
  std::vector<std::size_t> specials;
  for (const PlacedToken& source : told->sources)
    if (source.id == *tokenizer->find(marker)) {
      EXPECT_EQ(text.substr(source.begin, source.end - source.begin), marker);
      specials.push_back(source.begin);
    }
  EXPECT_EQ(specials, (std::vector<std::size_t>{0, text.size() - marker.size()}));
  // Every byte of the words is some token's: "the" begins where it does.
  EXPECT_EQ(told->sources[1].begin, marker.size());
  for (const std::string& odd : odd_texts()) {
    const std::vector<ByteSpan> all{{0, odd.size()}};
    auto placed = tokenizer->place(odd, kPlain, all);
    ASSERT_TRUE(placed.ok());
    EXPECT_EQ(placed->ids(), tokenizer->encode(odd, kPlain, all)) << odd;
  }
}

TEST_P(Explain, IsBounded) {
  auto tokenizer = fixture_tokenizer(GetParam());
  auto most = tokenizer->explain(std::string(Tokenizer::kMostExplained, 'a'), kPlain);
  ASSERT_TRUE(most.ok()) << most.error().message;
  for (const ExplainedWord& word : most->words) {
    EXPECT_LE(word.candidates.size(), ExplainedWord::kMostCandidates * (word.end - word.begin + 1));
    EXPECT_LT(word.merges.size(), Tokenizer::kMostExplained);
  }
  auto over = tokenizer->explain(std::string(Tokenizer::kMostExplained + 1, 'a'), kPlain);
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().code, ErrorCode::kTooLarge);
  EXPECT_NE(over.error().message.find("65537 bytes; up to 65536"), std::string::npos)
      << over.error().message;
  EXPECT_FALSE(tokenizer->place(std::string(Tokenizer::kMostPlaced + 1, 'a'), kPlain, {}).ok());
}

TEST(ExplainSources, AreExactWhereNothingIsRewritten) {
  auto tokenizer = fixture_tokenizer("byte_bpe");
  for (const std::string& text : {std::string("the cats 🦊 שלום"), std::string("a\n\n b")}) {
    auto told = tokenizer->explain(text, kPlain);
    std::string back;
    for (const PlacedToken& source : told->sources) {
      EXPECT_EQ(source.begin, back.size());
      back += text.substr(source.begin, source.end - source.begin);
      EXPECT_EQ(tokenizer->piece(source.id), text.substr(source.begin, source.end - source.begin));
    }
    EXPECT_EQ(back, text);
  }
}

TEST(ExplainSources, FollowWhatWasRewritten) {
  // Lower case, accents off, words without their spaces; and a space mark in front.
  auto bert = fixture_tokenizer("wordpiece")->explain("The  CAT", kPlain);
  ASSERT_GE(bert->sources.size(), 2u);
  EXPECT_EQ(bert->sources[0].begin, 0u);
  EXPECT_EQ(bert->sources.back().end, 8u);
  auto spm = fixture_tokenizer("spm_bpe")->explain("the cat", kPlain);
  EXPECT_EQ(spm->sources[0].begin, 0u);
  EXPECT_EQ(spm->sources.back().end, 7u);
}

// GGUF's SentencePiece: merges by score, marks that begin words, bytes of what is no token.
TEST(ExplainMerges, FollowScores) {
  Vocab vocab;
  std::vector<float> scores;
  const char* const tokens[] = {"▁", "a", "b", "▁a", "ab", "ba", "▁ab", "aa", "<0xC3>", "<0xA9>"};
  for (std::int32_t i = 0; i < 10; ++i) {
    vocab.set(i, tokens[i], i < 8 ? TokenKind::kNormal : TokenKind::kByte);
    scores.push_back(static_cast<float>(-(i % 4)));
  }
  ScoreBpe model(vocab, scores, kNoToken);
  std::mt19937 random(9);
  const char* const letters[] = {"a", "b", "▁", "é"};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (std::size_t n = random() % (round % 10 == 0 ? 1500 : 30); n > 0; --n)
      text += letters[random() % 4];
    WordScratch scratch;
    Ids ids, told_ids;
    model.encode(text, scratch, ids);
    std::vector<ExplainedWord> told;
    model.explain(text, true, told);
    for (const ExplainedWord& word : told) {
      for (const PlacedToken& token : word.tokens) told_ids.push_back(token.id);
      for (const DoneMerge& merge : word.merges)
        EXPECT_EQ(merge.rank, scores[static_cast<std::size_t>(merge.id)]);
    }
    ASSERT_EQ(told_ids, ids) << text;
  }
}

TEST(ExplainMerges, AreInTheOrderTheyWereDone) {
  auto tokenizer = make_tokenizer(R"({"model":{"type":"BPE","vocab":
      {"a":0,"b":1,"c":2,"ab":3,"bc":4,"abc":5},"merges":["b c","a b","a bc"]}})");
  auto told = tokenizer->explain("abc", kPlain);
  ASSERT_TRUE(told.ok());
  ASSERT_EQ(told->words.size(), 1u);
  const ExplainedWord& word = told->words[0];
  EXPECT_EQ(word.start.size(), 3u);
  ASSERT_EQ(word.merges.size(), 2u);
  EXPECT_EQ(word.merges[0].left, 1u);
  EXPECT_EQ(word.merges[0].right, 2u);
  EXPECT_EQ(word.merges[0].rank, 0);
  EXPECT_EQ(word.merges[0].id, 4);
  EXPECT_EQ(word.merges[1].left, 0u);
  EXPECT_EQ(word.merges[1].right, 1u);
  EXPECT_EQ(word.merges[1].rank, 2);
  EXPECT_EQ(word.merges[1].id, 5);
  EXPECT_EQ(told->ids(), (Ids{5}));
}

}  // namespace
}  // namespace vitrine
