#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/utf8.h"
#include "tokenizer/test_support.h"

namespace vitrine {
namespace {

MetaArray strings(std::vector<std::string> values) {
  MetaArray array;
  array.type = MetaType::kString;
  array.count = values.size();
  array.strings = std::move(values);
  return array;
}

MetaArray floats(std::vector<double> values) {
  MetaArray array;
  array.type = MetaType::kFloat;
  array.count = values.size();
  array.floats = std::move(values);
  return array;
}

MetaArray ints(std::vector<std::int64_t> values) {
  MetaArray array;
  array.type = MetaType::kInt;
  array.count = values.size();
  array.ints = std::move(values);
  return array;
}

// Keys by name, so that a test can change one of them.
using Keys = std::map<std::string, MetaValue>;

Result<std::unique_ptr<Tokenizer>> load(const Keys& keys) {
  Meta meta;
  for (const auto& [key, value] : keys) meta.add("tokenizer.ggml." + key, value);
  return Tokenizer::from_gguf(meta);
}

std::unique_ptr<Tokenizer> load_ok(const Keys& keys) {
  auto made = load(keys);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return made.ok() ? std::move(made).value() : nullptr;
}

constexpr std::int64_t kNormal = 1, kUnknown = 2, kControl = 3, kUser = 4, kByte = 6;

Keys llama() {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<double> scores = {0, 0, 0};
  std::vector<std::int64_t> types = {kUnknown, kControl, kControl};
  for (int b = 0; b < 256; ++b) {
    tokens.push_back(fmt::format("<0x{:02X}>", b));
    scores.push_back(0);
    types.push_back(kByte);
  }
  double score = -1;
  for (const char* token : {"▁a", "ab", "▁ab", "▁", "a", "b", "bc", "c"}) {
    tokens.push_back(token);
    scores.push_back(score--);
    types.push_back(kNormal);
  }
  tokens.push_back("<tool>");
  scores.push_back(0);
  types.push_back(kUser);
  return {{"model", std::string_view("llama")},
          {"tokens", strings(tokens)},
          {"scores", floats(scores)},
          {"token_type", ints(types)}};
}

TEST(Gguf, LlamaMergesByScore) {
  auto tokenizer = load_ok(llama());
  auto id = [&](const char* token) { return *tokenizer->find(token); };
  EXPECT_EQ(tokenizer->kind(), "SentencePiece BPE");
  // "▁a" has the best score, then "▁ab" is formed from it although "ab" scores better than "▁ab".
  EXPECT_EQ(tokenizer->encode("ab", kPlain), Ids{id("▁ab")});
  EXPECT_EQ(tokenizer->encode("abc", kPlain), (Ids{id("▁ab"), id("c")}));
  EXPECT_EQ(tokenizer->encode("bc", kPlain), (Ids{id("▁"), id("bc")}));
  EXPECT_EQ(tokenizer->encode("a"), (Ids{1, id("▁a")}));
  EXPECT_EQ(tokenizer->encode("", kPlain), Ids{});
  EXPECT_EQ(tokenizer->encode("é", kPlain), (Ids{id("▁"), id("<0xC3>"), id("<0xA9>")}));
  for (const char* text : {"ab c", " a", "é日\n", "a  b"})
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, kPlain)), text);
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->eos(), 2);
  EXPECT_EQ(tokenizer->unk(), 0);
}

TEST(Gguf, LlamaTakesAddedTokensByKind) {
  auto tokenizer = load_ok(llama());
  std::int32_t tool = *tokenizer->find("<tool>");
  Ids ids = tokenizer->encode("a<tool>a", kPlain);
  EXPECT_EQ(ids, (Ids{*tokenizer->find("▁a"), tool, *tokenizer->find("▁a")}));
  Ids plain = tokenizer->encode("</s>", kPlain);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), 2), 0);
  EXPECT_EQ(tokenizer->encode("</s>", kParse), Ids{2});
  EXPECT_TRUE(tokenizer->is_special(2));
  EXPECT_FALSE(tokenizer->is_special(tool));
  // Text that spells a byte token stays text.
  EXPECT_GT(tokenizer->encode("<0x0A>", kPlain).size(), 3u);
}

TEST(Gguf, LlamaObeysItsFlags) {
  Keys keys = llama();
  keys["add_bos_token"] = false;
  keys["add_eos_token"] = true;
  keys["add_space_prefix"] = false;
  auto tokenizer = load_ok(keys);
  EXPECT_EQ(tokenizer->encode("b"), (Ids{*tokenizer->find("b"), 2}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(" b", kPlain)), " b");
}

Keys gpt2() {
  std::vector<std::string> tokens = {"<|endoftext|>"};
  std::vector<std::int64_t> types = {kControl};
  for (char c = 'a'; c <= 'e'; ++c) tokens.push_back(std::string(1, c));
  for (const char* token : {"Ġ", "1", "2", "ab", "abc", "Ġa", "é!"}) tokens.push_back(token);
  types.resize(tokens.size(), kNormal);
  types.back() = kUser;
  return {{"model", std::string_view("gpt2")},
          {"pre", std::string_view("llama-bpe")},
          {"tokens", strings(tokens)},
          {"token_type", ints(types)},
          {"merges", strings({"a b", "ab c", "Ġ a", "no merge", "x", ""})},
          {"bos_token_id", std::uint64_t{0}},
          {"eos_token_id", std::uint64_t{0}}};
}

TEST(Gguf, ByteLevelByNameOfThePreTokenizer) {
  auto tokenizer = load_ok(gpt2());
  auto id = [&](const char* token) { return *tokenizer->find(token); };
  EXPECT_EQ(tokenizer->encode("abc ab", kPlain), (Ids{id("abc"), id("Ġ"), id("ab")}));
  EXPECT_EQ(tokenizer->encode("a"), (Ids{0, id("a")}));  // llama-bpe adds BOS
  EXPECT_EQ(tokenizer->encode("1212", kPlain), (Ids{id("1"), id("2"), id("1"), id("2")}));
  // An added token is text as it stands, although it could be read as byte-level.
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("aé!", kPlain)), "aé!");
  EXPECT_EQ(tokenizer->piece(id("Ġa")), " a");
  Keys keys = gpt2();
  keys["pre"] = std::string_view("no-such-name");
  auto unknown = load(keys);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(unknown.error().message.find("no-such-name"), std::string::npos);
}

TEST(Gguf, TokensThatEndATurnAreSpecialWhateverTheirType) {
  Keys keys = gpt2();
  std::get<MetaArray>(keys["token_type"]).ints[0] = kNormal;
  auto tokenizer = load_ok(keys);
  EXPECT_TRUE(tokenizer->is_special(0));
  EXPECT_EQ(tokenizer->encode("<|endoftext|>", kParse), Ids{0});
}

Keys t5() {
  return {{"model", std::string_view("t5")},
          {"tokens", strings({"<pad>", "</s>", "<unk>", "▁", "▁the", "▁th", "e", "h", "t", "x"})},
          {"scores", floats({0, 0, 0, -2, -3, -2.5, -2, -4, -4, -6})},
          {"token_type", ints({3, 3, 2, 1, 1, 1, 1, 1, 1, 1})},
          {"remove_extra_whitespaces", true}};
}

TEST(Gguf, UnigramFindsTheBestPath) {
  auto tokenizer = load_ok(t5());
  EXPECT_EQ(tokenizer->kind(), "unigram");
  EXPECT_EQ(tokenizer->encode("the", kPlain), Ids{4});
  EXPECT_EQ(tokenizer->encode("  the   the "), (Ids{4, 4, 1}));
  EXPECT_EQ(tokenizer->encode("x日本x", kPlain), (Ids{3, 9, 2, 9}));
  EXPECT_EQ(tokenizer->decode(Ids{4, 4}), "the the");
}

Keys bert() {
  return {
      {"model", std::string_view("bert")},
      {"tokens", strings({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁the", "▁cat", "s", "▁,", "▁c"})},
      {"token_type", ints({3, 3, 3, 3, 1, 1, 1, 1, 1})},
      {"bos_token_id", std::uint64_t{2}},
      {"unknown_token_id", std::uint64_t{1}},
      {"seperator_token_id", std::uint64_t{3}}};
}

TEST(Gguf, WordPiecesAreRestored) {
  auto tokenizer = load_ok(bert());
  EXPECT_EQ(tokenizer->kind(), "WordPiece");
  EXPECT_EQ(tokenizer->encode("The CATS, dog"), (Ids{2, 4, 5, 6, 7, 1, 3}));
  EXPECT_EQ(tokenizer->decode(Ids{4, 5, 6, 7}), "the cats,");
  EXPECT_EQ(tokenizer->find("##s"), 6);
}

TEST(Gguf, NoTokenizerIsNotFound) {
  EXPECT_EQ(Tokenizer::from_gguf(Meta()).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(load({{"model", std::string_view("none")}}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(load({{"model", std::string_view("rwkv")}, {"tokens", strings({"a"})}}).error().code,
            ErrorCode::kUnsupported);
}

TEST(GgufHostile, WrongTypesAndCountsAreRefused) {
  const MetaValue odd[] = {true,
                           std::int64_t{-1},
                           std::uint64_t{1} << 63,
                           1.5,
                           std::string_view("text"),
                           strings({"a"}),
                           floats({1, 2}),
                           ints({1}),
                           strings({})};
  for (const Keys& good : {llama(), gpt2(), t5(), bert()})
    for (const auto& [key, value] : good)
      for (const MetaValue& other : odd) {
        Keys keys = good;
        keys[key] = other;
        auto made = load(keys);
        if (!made.ok()) {
          EXPECT_FALSE(made.error().message.empty());
          continue;
        }
        (*made)->encode("the <s> ab\xFF");
        (*made)->decode(Ids{0, 1, 2, 3, 1000});
      }
}

TEST(GgufHostile, ArraysMustFitTheTokens) {
  for (int extra : {-1, 1}) {
    Keys keys = llama();
    auto& scores = std::get<MetaArray>(keys["scores"]);
    scores.floats.resize(scores.floats.size() + extra);
    scores.count += extra;
    EXPECT_EQ(load(keys).error().code, ErrorCode::kMalformed);
    keys = llama();
    auto& types = std::get<MetaArray>(keys["token_type"]);
    types.ints.resize(types.ints.size() + extra);
    types.count += extra;
    EXPECT_EQ(load(keys).error().code, ErrorCode::kMalformed);
  }
  Keys keys = llama();
  keys.erase("scores");
  EXPECT_FALSE(load(keys).ok());
  keys = gpt2();
  keys.erase("merges");
  EXPECT_FALSE(load(keys).ok());
}

TEST(GgufHostile, ByteTokensMustNameAByte) {
  for (const char* spelling : {"<0x-1>", "<0xZZ>", "<0x1>", "<0x100>", "<0xG0>", "", "<0x0A"}) {
    Keys keys = llama();
    std::get<MetaArray>(keys["tokens"]).strings[10] = spelling;
    auto made = load(keys);
    ASSERT_FALSE(made.ok()) << spelling;
    EXPECT_EQ(made.error().code, ErrorCode::kMalformed);
    // The same spelling as a plain token is just a token.
    std::get<MetaArray>(keys["token_type"]).ints[10] = kNormal;
    auto plain = load_ok(keys);
    plain->encode(std::string("x\x07y") + spelling);
    EXPECT_EQ(plain->piece(10), spelling);
  }
}

TEST(GgufHostile, SpecialIdsOutsideTheVocabularyMeanNone) {
  for (std::uint64_t id :
       {std::uint64_t{1000}, std::uint64_t{0xFFFFFFFF}, std::uint64_t{1} << 40}) {
    Keys keys = llama();
    for (const char* key : {"bos_token_id", "eos_token_id", "unknown_token_id", "padding_token_id"})
      keys[key] = id;
    keys["add_eos_token"] = true;
    auto tokenizer = load_ok(keys);
    EXPECT_EQ(tokenizer->bos(), std::nullopt);
    EXPECT_EQ(tokenizer->pad(), std::nullopt);
    EXPECT_EQ(tokenizer->encode("a"), Ids{*tokenizer->find("▁a")});
  }
}

// An added token that is a part of a character leaves the rest of it, at the very end of the text.
TEST(GgufHostile, TokensMayCutCharacters) {
  for (const char* part : {"\xC3", "\xE4\xB8", "\xF0\x9F\x98", "\xF0"}) {
    Keys keys = gpt2();
    std::get<MetaArray>(keys["tokens"]).strings.push_back(part);
    std::get<MetaArray>(keys["token_type"]).ints.push_back(kUser);
    auto tokenizer = load_ok(keys);
    auto id = static_cast<std::int32_t>(std::get<MetaArray>(keys["tokens"]).strings.size()) - 1;
    for (std::string text : {"é", "aé", "中", "a中 中", "\U0001F600", " \U0001F600a\U0001F600"}) {
      std::vector<char> exact(text.begin(), text.end());
      Ids ids = tokenizer->encode({exact.data(), exact.size()}, kPlain);
      bool there = text.find(part) != std::string::npos;
      EXPECT_EQ(std::count(ids.begin(), ids.end(), id) > 0, there) << text;
    }
  }
}

TEST(GgufHostile, OddTokensAreHandled) {
  Keys keys = llama();
  auto& tokens = std::get<MetaArray>(keys["tokens"]).strings;
  std::size_t last = tokens.size() - 1;
  tokens[last] = "";                              // an empty added token
  tokens[last - 1] = std::string("\xFF\xC3", 2);  // no UTF-8
  tokens[last - 2] = "a";                         // twice
  tokens[last - 3] = std::string("a\0b", 3);
  tokens[last - 4] = std::string(1 << 16, 'a');
  auto& scores = std::get<MetaArray>(keys["scores"]).floats;
  scores[last - 5] = std::nan("");
  scores[last - 6] = std::numeric_limits<double>::infinity();
  for (const char* model : {"llama", "t5"}) {
    keys["model"] = std::string_view(model);
    auto tokenizer = load_ok(keys);
    tokenizer->encode(std::string(5000, 'a') + std::string("\0b\xFF", 3));
    Ids all;
    for (std::int32_t id = 0; id < tokenizer->vocab_size(); ++id) {
      all.push_back(id);
      tokenizer->piece(id);
    }
    EXPECT_TRUE(utf8_valid(tokenizer->decode(all)));
    EXPECT_EQ(decode_streamed(*tokenizer, all), tokenizer->decode(all));
  }
}

}  // namespace
}  // namespace vitrine
