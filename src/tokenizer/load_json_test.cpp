// Broken and hostile tokenizer.json files: an error that says what is wrong, or a tokenizer that
// works; never a crash, a hang or a large allocation.
#include <gtest/gtest.h>

#include "base/json.h"
#include "tokenizer/test_support.h"

namespace vitrine {
namespace {

void use(const Tokenizer& tokenizer) {
  Ids ids = tokenizer.encode("the cat's <|bos|> <s> 12 é\xFF");
  for (std::int32_t id : ids) EXPECT_LT(id, tokenizer.vocab_size());
  ids.insert(ids.end(), {0, 1, 2, 300});
  tokenizer.decode(ids);
  for (std::int32_t id : ids) tokenizer.piece(id);
}

void expect_malformed(std::string_view json, std::string_view words) {
  auto made = Tokenizer::from_json(json, "");
  ASSERT_FALSE(made.ok()) << json;
  EXPECT_EQ(made.error().code, ErrorCode::kMalformed) << made.error().message;
  EXPECT_NE(made.error().message.find(words), std::string::npos) << made.error().message;
}

TEST(JsonHostile, EveryTruncationIsRefused) {
  for (const char* name : kFixtureNames) {
    std::string json = fixture_text(name, "tokenizer.json");
    for (std::size_t size = 0; size < json.size(); size += 1 + size / 200) {
      auto made = Tokenizer::from_json(std::string_view(json).substr(0, size), "");
      ASSERT_FALSE(made.ok());
      ASSERT_EQ(made.error().code, ErrorCode::kMalformed);
    }
  }
}

// Puts `by` in the place of `node` and of everything under it, one at a time, and loads `copy`.
void replace_everywhere(json::value& copy, json::value& node, const json::value& by, int& budget) {
  if (--budget < 0) return;
  json::value kept = std::move(node);
  node = by;
  if (auto made = Tokenizer::from_json(json::serialize(copy), ""); made.ok())
    use(**made);
  else
    EXPECT_FALSE(made.error().message.empty());
  node = std::move(kept);
  // A few members of each container are enough; vocabularies have hundreds.
  int members = 0;
  if (node.is_object()) {
    for (auto& member : node.get_object())
      if (++members <= 12) replace_everywhere(copy, member.value(), by, budget);
  } else if (node.is_array()) {
    for (auto& member : node.get_array())
      if (++members <= 3) replace_everywhere(copy, member, by, budget);
  }
}

TEST(JsonHostile, AnyValueOfAnyOtherTypeIsSurvived) {
  const json::value odd[] = {nullptr,
                             true,
                             -1,
                             4'000'000'000,
                             1.5e300,
                             "",
                             "\u2581x",
                             json::array{},
                             json::object{},
                             json::array{json::array{"a", 1}},
                             json::object{{"type", "Sequence"}}};
  for (const char* name : kFixtureNames) {
    json::value document = json::parse(fixture_text(name, "tokenizer.json"));
    for (const json::value& by : odd) {
      json::value copy = document;
      int budget = 150;
      replace_everywhere(copy, copy, by, budget);
    }
  }
}

TEST(JsonHostile, ErrorsNameWhatIsWrong) {
  expect_malformed("[]", "object");
  expect_malformed("{}", "model");
  expect_malformed(R"({"model":{"type":"BPE"}})", "model.vocab");
  expect_malformed(R"({"model":{"type":"BPE","vocab":{"a":"0"}}})", "\"a\"");
  expect_malformed(R"({"model":{"type":"BPE","vocab":{"a":-1}}})", "-1");
  expect_malformed(R"({"model":{"type":"BPE","vocab":{"a":2147483647}}})", "2147483647");
  expect_malformed(R"({"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b"]}})",
                   "merges[0]");
  expect_malformed(R"({"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":["a c"]}})", "\"c\"");
  expect_malformed(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}})", "merges[0]");
  expect_malformed(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[[1,2]]}})", "merges[0]");
  expect_malformed(R"({"model":{"type":"Unigram","unk_id":5,"vocab":[["a",0.0]]}})", "unk_id");
  expect_malformed(R"({"model":{"type":"Unigram","vocab":[["a"]]}})", "vocab[0]");
  expect_malformed(R"({"model":{"type":"WordPiece","vocab":{},"max_input_chars_per_word":-1}})",
                   "max_input_chars_per_word");
  expect_malformed(
      R"({"added_tokens":[{"id":-5,"content":"x"}],"model":{"type":"BPE","vocab":{}}})", "-5");
  expect_malformed(
      R"({"added_tokens":[{"id":2000000000,"content":"x"}],"model":{"type":"BPE","vocab":{}}})",
      "2000000000");
  expect_malformed(
      R"({"post_processor":{"type":"BertProcessing","sep":["x",9],"cls":["y",0]},
          "model":{"type":"BPE","vocab":{"a":0}}})",
      "9");
  expect_malformed(R"({"decoder":{"type":"Strip","content":"ab","start":0,"stop":0},
                       "model":{"type":"BPE","vocab":{"a":0}}})",
                   "content");
}

TEST(JsonHostile, UnknownTypesAreNamed) {
  for (const char* json :
       {R"({"model":{"type":"Magic","vocab":{}}})",
        R"({"normalizer":{"type":"Magic"},"model":{"type":"BPE","vocab":{}}})",
        R"({"pre_tokenizer":{"type":"Magic"},"model":{"type":"BPE","vocab":{}}})",
        R"({"decoder":{"type":"Magic"},"model":{"type":"BPE","vocab":{}}})",
        R"({"post_processor":{"type":"Magic"},"model":{"type":"BPE","vocab":{}}})"}) {
    auto made = Tokenizer::from_json(json, "");
    ASSERT_FALSE(made.ok()) << json;
    EXPECT_EQ(made.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(made.error().message.find("Magic"), std::string::npos);
  }
}

TEST(JsonHostile, AnEmptyVocabularyWorks) {
  for (const char* json :
       {R"({"model":{"type":"BPE","vocab":{}}})", R"({"model":{"type":"WordPiece","vocab":{}}})",
        R"({"model":{"type":"WordLevel","vocab":{}}})",
        R"({"model":{"type":"Unigram","vocab":[]}})",
        R"({"model":{"type":"BPE","vocab":{"":0,"a":0}}})"})
    use(*make_tokenizer(json));
}

TEST(JsonHostile, ChainsHaveALimit) {
  std::string steps;
  for (int i = 0; i < 100; ++i) steps += R"({"type":"NFC"},)";
  steps.pop_back();
  auto made = Tokenizer::from_json(R"({"normalizer":{"type":"Sequence","normalizers":[)" + steps +
                                       R"(]},"model":{"type":"BPE","vocab":{}}})",
                                   "");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::kTooLarge);
}

TEST(JsonHostile, AddedTokensHaveALimit) {
  std::string huge(5 << 20, 'a');
  auto made = Tokenizer::from_json(R"({"added_tokens":[{"id":0,"content":")" + huge +
                                       R"("}],"model":{"type":"BPE","vocab":{}}})",
                                   "");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::kTooLarge);
}

TEST(JsonHostile, ABrokenConfigIsRefusedByName) {
  std::string json = fixture_text("byte_bpe", "tokenizer.json");
  for (const char* config :
       {"{", "[]", R"({"add_bos_token":3,"tokenizer_class":"LlamaTokenizer"})"}) {
    auto made = Tokenizer::from_json(json, config);
    ASSERT_FALSE(made.ok()) << config;
    EXPECT_EQ(made.error().code, ErrorCode::kMalformed);
  }
}

}  // namespace
}  // namespace vitrine
