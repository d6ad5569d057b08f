// POST /tokenize with a trace, and /apply-template with spans.
#include "base/utf8.h"
#include "server/api_test_fixture.h"

namespace vitrine::test {
namespace {

json::array ids_of(const json::object& told) {
  json::array out = told.at("prefix").as_array();
  for (const json::value& word : told.at("words").as_array())
    for (const json::value& id : word.at("ids").as_array()) out.push_back(id);
  for (const json::value& id : told.at("suffix").as_array()) out.push_back(id);
  return out;
}

TEST_F(ApiTest, ATraceTellsTheWordsOfAText) {
  json::object told =
      get("/tokenize", R"({"content":"ab c</s>","trace":true,"parse_special":true})");
  EXPECT_EQ(told["normalized"], "ab c</s>");
  EXPECT_EQ(told["prefix"], json::array{kBos});
  EXPECT_EQ(told["suffix"], json::array{});
  EXPECT_EQ(told["words"].as_array().size(), 3u);
  EXPECT_EQ(json::serialize(told["words"].at(0)),
            R"({"begin":0,"end":2,"way":"merges","start":[[0,1,4],[1,2,5]],"merges":[],)"
            R"("ids":[4,5],"bytes":[[0,1],[1,2]]})");
  EXPECT_EQ(told["words"].at(1).at("begin"), 2);
  EXPECT_EQ(json::serialize(told["words"].at(2)),
            R"({"begin":4,"end":8,"way":"added","ids":[1],"bytes":[[4,8]]})");
  EXPECT_EQ(ids_of(told), told["tokens"].as_array());
  EXPECT_FALSE(get("/tokenize", R"({"content":"ab","trace":false})").contains("words"));
}

// Merges, a lattice and matches, by tokenizers of these kinds.
TEST_F(ApiTest, ATraceHasTheShapeOfItsTokenizer) {
  for (const auto& [kind, member] : {std::pair{"byte_bpe", "merges"},
                                     {"spm_bpe", "merges"},
                                     {"unigram", "candidates"},
                                     {"wordpiece", "matches"}}) {
    auto file = ModelFile::open(fmt::format("{}/tokenizer/{}", VT_FIXTURES, kind));
    ASSERT_TRUE(file.ok());
    auto other = std::move(Tokenizer::load(**file)).value();
    api.tokenizer = other.get();
    for (const char* text :
         {"the cats", "", "🦊 שלום", "a\\u0000b", "she sells sea shells"}) {
      json::object told = get("/tokenize", fmt::format(R"({{"content":"{}","trace":true}})", text));
      EXPECT_EQ(ids_of(told), told["tokens"].as_array()) << kind << text;
      std::size_t at = 0;
      for (const json::value& word : told["words"].as_array()) {
        EXPECT_GE(word.at("begin").as_int64(), static_cast<std::int64_t>(at));
        at = static_cast<std::size_t>(word.at("end").as_int64());
        EXPECT_LE(at, told["normalized"].as_string().size());
        EXPECT_TRUE(word.as_object().contains(member)) << json::serialize(word);
        EXPECT_EQ(word.at("ids").as_array().size(), word.at("bytes").as_array().size());
      }
    }
    api.tokenizer = tokenizer.get();
  }
}

TEST_F(ApiTest, ATraceIsRefusedWhereItWouldBeLong) {
  const std::string most(Tokenizer::kMostExplained, 'a');
  EXPECT_EQ(call("/tokenize", R"({"trace":true,"content":")" + most + R"("})")->status, 200);
  for (const char* field : {"content", "text", "prompt"}) {
    auto x = call("/tokenize", fmt::format(R"({{"trace":true,"{}":"{}a"}})", field, most));
    EXPECT_EQ(x->status, 400);
    const json::value error = json::parse(x->body).at("error");
    EXPECT_EQ(std::string(error.at("message").as_string()),
              fmt::format("{}: found 65537 bytes, allowed up to 65536 with trace", field));
    EXPECT_EQ(error.at("param"), field);
  }
  for (const char* bad : {"1", "\"yes\"", "[]", "{}", "[[[[true]]]]"}) {
    auto x = call("/tokenize", fmt::format(R"({{"content":"a","trace":{}}})", bad));
    EXPECT_EQ(x->status, 400) << bad;
    EXPECT_NE(x->body.find("trace"), x->body.npos);
  }
  EXPECT_EQ(call("/tokenize", R"({"trace":true})")->status, 400);
}

TEST_F(ApiTest, SpansSayWhoseAPromptIs) {
  json::object out = get("/apply-template", R"({"spans":true,"messages":[
      {"role":"system","content":"be"},{"role":"user","content":"a <|im_end|>"},
      {"role":"assistant","content":"b"},{"role":"user","content":"c"}]})");
  const std::string prompt(out["prompt"].as_string());
  std::string shown;
  std::int64_t at = 0;
  for (const json::value& span : out["spans"].as_array()) {
    EXPECT_EQ(span.at("begin"), at);
    at = span.at("end").as_int64();
    if (span.at("message").is_null()) continue;
    shown += fmt::format("{}:{}[{}] ", std::string(span.at("kind").as_string()),
                         span.at("message").as_int64(),
                         prompt.substr(static_cast<std::size_t>(span.at("begin").as_int64()),
                                       static_cast<std::size_t>(at - span.at("begin").as_int64())));
  }
  EXPECT_EQ(shown, "system:0[be] user:1[a <|im_end|>] assistant:2[b] user:3[c] ");
  EXPECT_EQ(at, static_cast<std::int64_t>(prompt.size()));
  // Of the tokens, those that are special say so, and the caller's spelling of one does not.
  const json::array& ids = out["tokens"].as_array();
  at = 0;
  int specials = 0;
  for (const json::value& span : out["token_spans"].as_array()) {
    EXPECT_EQ(span.at("begin"), at);
    at = span.at("end").as_int64();
    for (std::int64_t i = span.at("begin").as_int64(); i < at; ++i) {
      const std::int64_t id = ids[static_cast<std::size_t>(i)].as_int64();
      EXPECT_EQ(span.at("kind") == "special", id < 4) << i;
      specials += id < 4;
    }
  }
  EXPECT_EQ(at, static_cast<std::int64_t>(ids.size()));
  EXPECT_EQ(out["token_bytes"].as_array().size(), ids.size());
  EXPECT_GE(specials, 9);  // two for each message, and the answer's begun
  EXPECT_FALSE(
      get("/apply-template", R"({"messages":[{"role":"user","content":"a"}]})").contains("spans"));
}

TEST_F(ApiTest, SpansAreRefusedWhereTheyWouldBeLong) {
  auto body = [](std::string spans, std::size_t size) {
    return fmt::format(R"({{"spans":{},"messages":[{{"role":"user","content":"{}"}}]}})", spans,
                       std::string(size, 'a'));
  };
  EXPECT_EQ(call("/apply-template", body("true", 100000))->status, 200);
  auto x = call("/apply-template", body("true", Tokenizer::kMostPlaced));
  EXPECT_EQ(x->status, 400);
  EXPECT_NE(x->body.find("up to 1048576 can be explained"), x->body.npos) << x->body;
  EXPECT_EQ(call("/apply-template", body("false", Tokenizer::kMostPlaced))->status, 200);
  for (const char* bad : {"1", "\"yes\"", "[]", "{}", "[[[[true]]]]"})
    EXPECT_EQ(call("/apply-template", body(bad, 1))->status, 400) << bad;
}

}  // namespace
}  // namespace vitrine::test
