#include "tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <map>
#include <random>
#include <thread>

#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/test_support.h"

namespace vitrine {
namespace {

class Fixtures : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Fixtures, testing::ValuesIn(kFixtureNames));

TEST_P(Fixtures, MatchTheReferenceVectors) {
  auto tokenizer = fixture_tokenizer(GetParam());
  auto vectors = parse_json(fixture_text(GetParam(), "vectors.json"), "vectors").value();
  ASSERT_GT(vectors.as_array().size(), 10u);
  for (const json::value& vector : vectors.as_array()) {
    std::string text(vector.at("text").as_string());
    Ids ids;
    for (const json::value& id : vector.at("ids").as_array())
      ids.push_back(static_cast<std::int32_t>(id.as_int64()));
    EXPECT_EQ(tokenizer->encode(text, kParse), ids) << text;
    EXPECT_EQ(tokenizer->decode(ids), std::string(vector.at("decoded").as_string()));
    EXPECT_EQ(decode_streamed(*tokenizer, ids), tokenizer->decode(ids));
  }
}

TEST_P(Fixtures, LoadThroughModelFile) {
  auto file = ModelFile::open(std::string(VT_FIXTURES) + "/tokenizer/" + GetParam());
  ASSERT_TRUE(file.ok()) << file.error().message;
  auto tokenizer = Tokenizer::load(**file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ((*tokenizer)->encode("the cat"), fixture_tokenizer(GetParam())->encode("the cat"));
}

TEST_P(Fixtures, AnyBytesEncodeAndAnyIdsDecode) {
  auto tokenizer = fixture_tokenizer(GetParam());
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % (round % 2 ? 256 : 128));
    for (bool parse : {false, true}) {
      Ids ids = tokenizer->encode(bytes, {true, parse});
      for (std::int32_t id : ids)
        ASSERT_LT(static_cast<std::uint32_t>(id), tokenizer->vocab_size());
    }
    Ids ids(random() % 40);
    for (std::int32_t& id : ids)
      id = static_cast<std::int32_t>(random() % (tokenizer->vocab_size() + 4)) - 2;
    for (bool skip : {false, true}) {
      std::string text = tokenizer->decode(ids, skip);
      EXPECT_TRUE(utf8_valid(text));
      EXPECT_EQ(decode_streamed(*tokenizer, ids, skip), text);
    }
  }
}

TEST_P(Fixtures, IdsOutsideTheVocabularyAreNothing) {
  auto tokenizer = fixture_tokenizer(GetParam());
  Ids odd = {-1, INT32_MIN, INT32_MAX, tokenizer->vocab_size()};
  EXPECT_EQ(tokenizer->decode(odd), "");
  EXPECT_EQ(decode_streamed(*tokenizer, odd), "");
  for (std::int32_t id : odd) {
    EXPECT_EQ(tokenizer->piece(id), "");
    EXPECT_FALSE(tokenizer->is_special(id));
  }
}

// The special tokens of a fixture, spelt out.
std::vector<std::string> specials(const Tokenizer& tokenizer) {
  std::vector<std::string> out;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    if (tokenizer.is_special(id)) out.push_back(tokenizer.piece(id));
  return out;
}

TEST_P(Fixtures, WordsOfOthersNeverBecomeSpecialTokens) {
  auto tokenizer = fixture_tokenizer(GetParam());
  std::vector<std::string> markers = specials(*tokenizer);
  ASSERT_FALSE(markers.empty());
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    // Markers and words in turn; words may spell markers or parts of them.
    std::string text;
    std::vector<ByteSpan> words;
    std::map<std::int32_t, int> wanted;
    for (int part = 0; part < 6; ++part) {
      const std::string& marker = markers[random() % markers.size()];
      if (part % 2 == 0) {
        text += marker;
        ++wanted[*tokenizer->find(marker)];
        continue;
      }
      std::string word = random() % 2 ? marker : " the cat" + marker.substr(random() % 3);
      words.push_back({text.size(), text.size() + word.size()});
      text += word;
    }
    std::map<std::int32_t, int> found;
    for (std::int32_t id : tokenizer->encode(text, kPlain, words))
      if (tokenizer->is_special(id) && id != tokenizer->unk()) ++found[id];
    if (auto unk = tokenizer->find("[UNK]")) found.erase(*unk), wanted.erase(*unk);
    if (auto unk = tokenizer->find("<unk>")) found.erase(*unk), wanted.erase(*unk);
    EXPECT_EQ(found, wanted) << text;
  }
}

TEST_P(Fixtures, WithoutSpeltMarkersWordsAndTemplateAreOneText) {
  auto tokenizer = fixture_tokenizer(GetParam());
  std::string marker = specials(*tokenizer)[0];
  std::string text = marker + "the cat and the cats" + marker + " dog";
  std::size_t at = marker.size();
  std::vector<ByteSpan> words{{at + 3, at + 9}, {at + 12, at + 15}};
  EXPECT_EQ(tokenizer->encode(text, kPlain, words), tokenizer->encode(text, kParse));
  EXPECT_EQ(tokenizer->encode("\xff" + text, kPlain, words),
            tokenizer->encode("\xff" + text, kPlain));
}

TEST_P(Fixtures, SpellingASpecialTokenGivesItOnlyOnRequest) {
  auto tokenizer = fixture_tokenizer(GetParam());
  for (std::int32_t id = 0; id < 4; ++id) {
    if (!tokenizer->is_special(id)) continue;
    std::string text = "the " + tokenizer->piece(id) + " cat";
    Ids plain = tokenizer->encode(text, kPlain), parsed = tokenizer->encode(text, kParse);
    EXPECT_EQ(std::count(parsed.begin(), parsed.end(), id), 1) << text;
    // The unknown token may stand for parts of a spelling; no other special token may appear.
    if (tokenizer->unk() != id) {
      EXPECT_EQ(std::count(plain.begin(), plain.end(), id), 0) << text;
    }
  }
}

TEST_P(Fixtures, ThreadsShareATokenizer) {
  auto tokenizer = fixture_tokenizer(GetParam());
  Ids expected = tokenizer->encode("she sells sea shells");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_EQ(tokenizer->encode("she sells sea shells"), expected);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Tokenizer, AddsWhatItsTemplateSays) {
  Ids bytes = fixture_tokenizer("byte_bpe")->encode("a");
  EXPECT_EQ(bytes.front(), 0);  // <|bos|>
  Ids pieces = fixture_tokenizer("unigram")->encode("a");
  EXPECT_EQ(pieces.back(), 1);  // </s>
  Ids words = fixture_tokenizer("wordpiece")->encode("the");
  EXPECT_EQ(words.front(), 2);
  EXPECT_EQ(words.back(), 3);
  EXPECT_EQ(fixture_tokenizer("wordpiece")->encode(""), (Ids{2, 3}));
}

TEST(Tokenizer, KnowsItsKindAndItsTokens) {
  auto bytes = fixture_tokenizer("byte_bpe");
  EXPECT_EQ(bytes->kind(), "byte-level BPE");
  EXPECT_EQ(bytes->bos(), 0);
  EXPECT_EQ(bytes->eos(), 1);
  EXPECT_EQ(bytes->unk(), std::nullopt);
  EXPECT_EQ(bytes->find("<|eos|>"), 1);
  EXPECT_EQ(bytes->find("no such token"), std::nullopt);
  EXPECT_EQ(bytes->piece(*bytes->find("Ġthe")), " the");
  EXPECT_EQ(bytes->piece(0), "<|bos|>");
  auto marks = fixture_tokenizer("spm_bpe");
  EXPECT_EQ(marks->kind(), "SentencePiece BPE");
  EXPECT_EQ(marks->piece(*marks->find("<0x0A>")), "\n");
  EXPECT_EQ(marks->piece(*marks->find("▁the")), " the");
  EXPECT_EQ(fixture_tokenizer("unigram")->kind(), "unigram");
  EXPECT_EQ(fixture_tokenizer("wordpiece")->kind(), "WordPiece");
  EXPECT_EQ(fixture_tokenizer("wordpiece")->unk(), 1);
}

TEST(Tokenizer, SpecialTokensCanBeSkipped) {
  auto tokenizer = fixture_tokenizer("byte_bpe");
  Ids ids = tokenizer->encode("the cat");
  ids.push_back(1);
  EXPECT_EQ(tokenizer->decode(ids), "<|bos|>the cat<|eos|>");
  EXPECT_EQ(tokenizer->decode(ids, true), "the cat");
}

// A character-level BPE with the added tokens under test.
std::string with_added(const std::string& added, const std::string& normalizer = "null") {
  return fmt::format(
      R"({{"added_tokens":[{}],"normalizer":{},"pre_tokenizer":null,"decoder":{{"type":"Fuse"}},
          "model":{{"type":"BPE","merges":[],"vocab":{{"a":0,"b":1,"c":2," ":3,"<":4,">":5,"x":6}}}}}})",
      added, normalizer);
}

TEST(AddedTokens, AreLeftmostThenLongest) {
  auto tokenizer = make_tokenizer(with_added(
      R"({"id":10,"content":"ab","normalized":false},{"id":11,"content":"abc","normalized":false},
         {"id":12,"content":"bca","normalized":false})"));
  EXPECT_EQ(tokenizer->encode("abca", kPlain), (Ids{11, 0}));
  EXPECT_EQ(tokenizer->encode("bcab", kPlain), (Ids{12, 1}));
  EXPECT_EQ(tokenizer->encode("abab", kPlain), (Ids{10, 10}));
}

TEST(AddedTokens, TakeTheSpaceThatTheyStrip) {
  auto tokenizer = make_tokenizer(with_added(
      R"({"id":10,"content":"<x>","special":true,"lstrip":true,"rstrip":true,"normalized":false})"));
  EXPECT_EQ(tokenizer->encode("a  <x>  b", kParse), (Ids{0, 10, 1}));
  EXPECT_EQ(tokenizer->encode("<x> <x>", kParse), (Ids{10, 10}));
  EXPECT_EQ(tokenizer->encode("a <x>", kPlain), (Ids{0, 3, 4, 6, 5}));
}

TEST(AddedTokens, MatchOnlyWholeWordsWhenSaid) {
  auto tokenizer = make_tokenizer(
      with_added(R"({"id":10,"content":"ab","single_word":true,"normalized":false})"));
  EXPECT_EQ(tokenizer->encode("ab c", kPlain), (Ids{10, 3, 2}));
  EXPECT_EQ(tokenizer->encode("abc", kPlain), (Ids{0, 1, 2}));
  EXPECT_EQ(tokenizer->encode("cab", kPlain), (Ids{2, 0, 1}));
}

TEST(AddedTokens, MatchNormalizedTextWhenSaid) {
  std::string lower = R"({"type":"Lowercase"})";
  auto normalized =
      make_tokenizer(with_added(R"({"id":10,"content":"AB","normalized":true})", lower));
  EXPECT_EQ(normalized->encode("aBc", kPlain), (Ids{10, 2}));
  auto raw = make_tokenizer(with_added(R"({"id":10,"content":"AB","normalized":false})", lower));
  EXPECT_EQ(raw->encode("aBcAB", kPlain), (Ids{0, 1, 2, 10}));
}

TEST(Tokenizer, ConfigDecidesAboutBosForLlamaLikeClasses) {
  std::string json = fixture_text("spm_bpe", "tokenizer.json");
  auto first = [&](const char* config) {
    Ids ids = make_tokenizer(json, config)->encode("the");
    return ids.empty() ? -1 : ids.front();
  };
  EXPECT_EQ(first(R"({"tokenizer_class":"LlamaTokenizer","bos_token":"<s>"})"), 1);
  EXPECT_EQ(first(R"({"tokenizer_class":"LlamaTokenizer","bos_token":{"content":"<s>"},
                      "add_bos_token":true})"),
            1);
  EXPECT_NE(
      first(R"({"tokenizer_class":"LlamaTokenizer","bos_token":"<s>","add_bos_token":false})"), 1);
  EXPECT_NE(first(R"({"tokenizer_class":"PreTrainedTokenizerFast","bos_token":"<s>"})"), 1);
  auto both = make_tokenizer(json, R"({"tokenizer_class":"LlamaTokenizerFast","bos_token":"<s>",
      "eos_token":"</s>","add_eos_token":true,"pad_token":"<unk>"})");
  EXPECT_EQ(both->encode("the").back(), 2);
  EXPECT_EQ(both->pad(), 0);
  EXPECT_EQ(both->eos(), 2);
}

TEST(Tokenizer, TakesTokensThatOnlyTheConfigNames) {
  auto tokenizer = make_tokenizer(
      fixture_text("byte_bpe", "tokenizer.json"),
      R"({"added_tokens_decoder":{"900":{"content":"<|new|>","special":true,"normalized":false}}})");
  EXPECT_EQ(tokenizer->find("<|new|>"), 900);
  EXPECT_TRUE(tokenizer->is_special(900));
  EXPECT_EQ(tokenizer->encode("<|new|>", kParse), Ids{900});
}

TEST(Tokenizer, TakesAWordWholeWhenMergesAreIgnored) {
  std::string json = R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},
      "decoder":{"type":"ByteLevel"},"model":{"type":"BPE","ignore_merges":%,"merges":[],
      "vocab":{"a":0,"b":1,"ab":2}}})";
  std::string on = json, off = json;
  on.replace(on.find('%'), 1, "true");
  off.replace(off.find('%'), 1, "false");
  EXPECT_EQ(make_tokenizer(on)->encode("ab", kPlain), Ids{2});
  EXPECT_EQ(make_tokenizer(off)->encode("ab", kPlain), (Ids{0, 1}));
}

TEST(Tokenizer, MarksSubwordsAsTheModelSays) {
  auto tokenizer = make_tokenizer(
      R"({"pre_tokenizer":{"type":"WhitespaceSplit"},"decoder":{"type":"BPEDecoder","suffix":"</w>"},
          "model":{"type":"BPE","end_of_word_suffix":"</w>","merges":["a b</w>"],
                   "vocab":{"a":0,"b":1,"a</w>":2,"b</w>":3,"ab</w>":4}}})");
  Ids ids = tokenizer->encode("ab ba a", kPlain);
  EXPECT_EQ(ids, (Ids{4, 1, 2, 2}));
  EXPECT_EQ(tokenizer->decode(ids), "ab ba a");
}

TEST(Tokenizer, FusesUnknownCharactersWhenSaid) {
  std::string json = R"({"model":{"type":"BPE","unk_token":"?","fuse_unk":%,"merges":[],
                         "vocab":{"a":0,"?":1}}})";
  std::string on = json, off = json;
  on.replace(on.find('%'), 1, "true");
  off.replace(off.find('%'), 1, "false");
  EXPECT_EQ(make_tokenizer(on)->encode("axya", kPlain), (Ids{0, 1, 0}));
  EXPECT_EQ(make_tokenizer(off)->encode("axya", kPlain), (Ids{0, 1, 1, 0}));
}

TEST(Tokenizer, UnigramFallsBackToBytes) {
  std::string vocab = R"(["<unk>",0.0],["a",-1.0])";
  for (int b = 0; b < 256; ++b) vocab += fmt::format(R"(,["<0x{:02X}>",-5.0])", b);
  auto tokenizer = make_tokenizer(fmt::format(
      R"({{"decoder":{{"type":"Sequence","decoders":[{{"type":"ByteFallback"}},{{"type":"Fuse"}}]}},
          "model":{{"type":"Unigram","unk_id":0,"byte_fallback":true,"vocab":[{}]}}}})",
      vocab));
  Ids ids = tokenizer->encode("aéa", kPlain);
  EXPECT_EQ(ids, (Ids{1, 2 + 0xC3, 2 + 0xA9, 1}));
  EXPECT_EQ(tokenizer->decode(ids), "aéa");
}

TEST(Tokenizer, ContinuingAPromptKeepsTheLeadingSpace) {
  auto tokenizer = fixture_tokenizer("spm_bpe");
  Ids ids = tokenizer->encode("the cat", kPlain);
  StreamDecoder fresh(*tokenizer), more(*tokenizer, false, true);
  std::string start, continued;
  for (std::int32_t id : ids) {
    start += fresh.push(id);
    continued += more.push(id);
  }
  EXPECT_EQ(start + fresh.finish(), "the cat");
  EXPECT_EQ(continued + more.finish(), " the cat");
}

TEST(Tokenizer, StreamsWholeCharactersOnly) {
  auto tokenizer = fixture_tokenizer("byte_bpe");
  Ids ids = tokenizer->encode("é日😀x", kPlain);
  StreamDecoder decoder(*tokenizer);
  std::vector<std::string> parts;
  for (std::int32_t id : ids) {
    std::string part = decoder.push(id);
    EXPECT_TRUE(utf8_valid(part));
    if (!part.empty()) parts.push_back(part);
  }
  EXPECT_EQ(parts, (std::vector<std::string>{"é", "日", "😀", "x"}));
  EXPECT_EQ(decoder.finish(), "");
  StreamDecoder cut(*tokenizer);
  EXPECT_EQ(cut.push(ids[0]), "");
  EXPECT_EQ(cut.finish(), "\uFFFD");
}

TEST(Tokenizer, BytesThatAreNoTextDecodeAsHuggingFaceDoes) {
  auto tokenizer = fixture_tokenizer("spm_bpe");
  auto byte = [&](const char* name) { return *tokenizer->find(name); };
  EXPECT_EQ(tokenizer->decode(Ids{byte("<0xE6>"), byte("<0x97>"), byte("<0xA5>")}), "日");
  EXPECT_EQ(tokenizer->decode(Ids{byte("<0xC3>"), byte("<0xA9>"), byte("<0xFF>")}),
            "\uFFFD\uFFFD\uFFFD");
}

}  // namespace
}  // namespace vitrine
