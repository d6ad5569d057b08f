// Texts that are kept: which, for whom, how long, and their tokens.
#include "base/process_clock.h"
#include "server/api_test_fixture.h"
#include "server/request/call.h"

namespace vitrine {
namespace {

using test::ApiTest;
using test::FakeExchange;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kComplete = "/v1/completions";
constexpr const char* kRecord = R"("vitrine":{"record":true})";

class TextsTest : public ApiTest {
 protected:
  std::unique_ptr<FakeExchange> ask(const std::string& label, const std::string& fields,
                                    const std::string& tenant = "",
                                    const std::string& path = kComplete) {
    auto x = std::make_unique<FakeExchange>(io, "{" + fields + "}");
    x->mutable_request().id = label;
    x->mutable_request().tenant = tenant;
    if (!tenant.empty()) x->mutable_request().rights = {.is_operator = false, .min_priority = 0};
    begin(*x, path);
    finish();
    EXPECT_EQ(x->status, 200) << x->body;
    return x;
  }
  json::object kept(const std::string& name, const std::string& query = "") {
    FakeExchange x(io, "");
    x.mutable_request().method = "GET", x.mutable_request().query = query;
    begin(x, "/api/requests/" + name + "/tokens");
    finish();
    EXPECT_EQ(x.status, 200) << x.body;
    return json::parse(x.body).get_object();
  }
  std::unique_ptr<FakeExchange> look(const std::string& path, const std::string& tenant = "",
                                     const std::string& method = "GET") {
    return call(path, "", tenant, method);
  }
};

TEST_F(TextsTest, TokensOfARecordedRequest) {
  const std::int64_t before = process_ns();
  auto x =
      ask("mine", std::string(R"("prompt":"abcd","max_tokens":6,"ignore_eos":true,"logprobs":1,)"
                              R"("temperature":1,"seed":7,"logit_bias":{"9":1.5,"63":-100},)") +
                      kRecord);
  json::object text = kept("mine");
  EXPECT_EQ(text.at("label"), "mine");
  EXPECT_EQ(text.at("state"), "ended");
  EXPECT_EQ(text.at("finish_reason"), "length");
  EXPECT_EQ(text.at("seed").to_number<int>(), 7);
  EXPECT_EQ(text.at("prompt_tokens").to_number<int>(), 5);
  EXPECT_EQ(text.at("output_tokens").to_number<int>(), 6);
  EXPECT_EQ(text.at("sampling").at("temperature").to_number<double>(), 1);
  EXPECT_EQ(text.at("sampling").at("logit_bias").at("9").to_number<double>(), 1.5);
  EXPECT_EQ(text.at("sampling").at("samplers").as_array().size(), ordered_samplers().size());
  const json::array& tokens = text.at("tokens").as_array();
  ASSERT_EQ(tokens.size(), 11u);
  EXPECT_EQ(tokens[0].at("id").to_number<int>(), test::kBos);
  EXPECT_EQ(tokens[1].at("text"), "a");
  EXPECT_EQ(tokens[1].at("bytes"), json::array{97});
  EXPECT_EQ(tokens[1].at("kind"), "input");
  std::string said;
  std::int64_t last = before;
  const json::value answer = json::parse(x->body).at("choices").at(0);
  for (std::size_t i = 5; i < tokens.size(); ++i) {
    EXPECT_EQ(tokens[i].at("kind"), "output");
    const auto at = tokens[i].at("at_ns").to_number<std::int64_t>();
    EXPECT_GE(at, last);
    last = at;
    EXPECT_EQ(tokens[i].at("logprob"), answer.at("logprobs").at("token_logprobs").at(i - 5));
    if (!tokens[i].at("special").as_bool()) said += tokens[i].at("text").as_string();
  }
  EXPECT_LE(last, process_ns());
  EXPECT_EQ(said, text_of(answer));
  // By number too, which the account has.
  EXPECT_EQ(kept(std::to_string(text.at("id").to_number<int>())), text);
}

TEST_F(TextsTest, CachedTokensAreKnown) {
  const std::string prompt = R"("prompt":"abcdefghijklmnopqrstuvwxyzabcdefgh","max_tokens":1,)";
  ask("one", prompt + kRecord);
  ask("two", prompt + kRecord);
  const json::object text = kept("two");
  int cached = 0;
  for (const json::value& t : text.at("tokens").as_array()) cached += t.at("kind") == "cached";
  EXPECT_EQ(cached, 32);
}

TEST_F(TextsTest, OnlyWhatAskedIsKept) {
  ask("quiet", R"("prompt":"ab","max_tokens":1)");
  auto x = look("/api/requests/quiet/tokens");
  EXPECT_EQ(x->status, 404);
  EXPECT_THAT(x->body, HasSubstr(R"(\"record\": true)"));
  EXPECT_THAT(x->body, HasSubstr("not_recorded"));
  EXPECT_EQ(look("/api/requests/nobody/tokens")->status, 404);
  EXPECT_EQ(api.texts.size(), 0u);
  api.texts.configure(RecordMode::kAll, 1 << 20);
  ask("loud", R"("prompt":"ab","max_tokens":1)");
  EXPECT_EQ(look("/api/requests/loud/tokens")->status, 200);
  api.texts.configure(RecordMode::kNone, 1 << 20);
  ask("off", std::string(R"("prompt":"ab","max_tokens":1,)") + kRecord);
  auto off = look("/api/requests/off/tokens");
  EXPECT_EQ(off->status, 404);
  EXPECT_THAT(off->body, HasSubstr("--record none"));
}

TEST_F(TextsTest, ChoicesAreKeptEach) {
  ask("many", std::string(R"("prompt":["ab","cd"],"n":2,"max_tokens":3,"temperature":1,)"
                          R"("ignore_eos":true,)") +
                  kRecord);
  for (int i = 0; i < 4; ++i) {
    json::object text = kept("many", "choice=" + std::to_string(i));
    EXPECT_EQ(text.at("choice").to_number<int>(), i);
    EXPECT_EQ(text.at("draw_choice").to_number<int>(), i % 2);
    EXPECT_EQ(text.at("tokens").at(1).at("text"), i < 2 ? "a" : "c");
  }
  EXPECT_EQ(kept("many").at("choice").to_number<int>(), 0);
  for (const char* query : {"choice=4", "choice=-1", "choice=x", "choice=", "other=1"}) {
    FakeExchange x(io, "");
    x.mutable_request().method = "GET", x.mutable_request().query = query;
    begin(x, "/api/requests/many/tokens");
    finish();
    EXPECT_EQ(x.status, std::string(query) == "choice=4" ? 404 : 400) << query;
  }
}

TEST_F(TextsTest, ALabelThatIsUsedAgainIsTheNewerRequest) {
  ask("same", std::string(R"("prompt":"ab","max_tokens":1,)") + kRecord);
  ask("same", std::string(R"("prompt":"xy","max_tokens":1,)") + kRecord);
  EXPECT_EQ(kept("same").at("tokens").at(1).at("text"), "x");
}

TEST_F(TextsTest, KeysSeeTheirOwn) {
  ask("secret", std::string(R"("prompt":"ab","max_tokens":1,)") + kRecord, "ann");
  EXPECT_EQ(look("/api/requests/secret/tokens", "ann")->status, 200);
  EXPECT_EQ(look("/api/requests/secret/tokens")->status, 200) << "an operator";
  // Numbers count everybody's requests.
  EXPECT_EQ(look("/api/requests/1/tokens", "ann")->status, 404);
  EXPECT_EQ(look("/api/requests/1/tokens")->status, 200);
  EXPECT_THAT(look("/api/requests/secret/tokens", "ann")->body, Not(HasSubstr("\"id\":1,")));
  auto strange = look("/api/requests/secret/tokens", "bob");
  auto unknown = look("/api/requests/hidden/tokens", "bob");
  EXPECT_EQ(strange->status, 404);
  // The same words as for one that never was.
  std::string words = unknown->body;
  words.replace(words.find("hidden"), 6, "secret");
  EXPECT_EQ(strange->body, words);
  EXPECT_EQ(look("/api/requests/secret", "bob", "DELETE")->status, 404);
  EXPECT_EQ(look("/api/requests/secret/tokens", "ann")->status, 200);
}

TEST_F(TextsTest, ForgetsWhenAsked) {
  ask("gone", std::string(R"("prompt":"ab","n":2,"max_tokens":1,)") + kRecord);
  auto x = look("/api/requests/gone", "", "DELETE");
  EXPECT_EQ(x->status, 200);
  EXPECT_EQ(x->body, R"({"forgotten":2})");
  EXPECT_EQ(look("/api/requests/gone/tokens")->status, 404);
  EXPECT_EQ(look("/api/requests/gone", "", "DELETE")->status, 404);
  EXPECT_EQ(look("/api/requests/gone")->status, 200) << "its account stays";
  EXPECT_EQ(api.texts.size(), 0u);
  EXPECT_EQ(api.texts.bytes(), 0u);
}

TEST_F(TextsTest, TheOldestGoFirst) {
  constexpr std::size_t kMost = 64 << 10;
  api.texts.configure(RecordMode::kAsked, kMost);
  for (int i = 0; i < 60; ++i) {
    ask("r" + std::to_string(i),
        std::string(R"("prompt":"abcdefgh","max_tokens":8,"ignore_eos":true,)") + kRecord);
    EXPECT_LE(api.texts.bytes(), kMost);
  }
  EXPECT_GT(api.texts.size(), 5u);
  EXPECT_LT(api.texts.size(), 60u);
  EXPECT_EQ(look("/api/requests/r0/tokens")->status, 404);
  EXPECT_EQ(look("/api/requests/r59/tokens")->status, 200);
  auto info = get("/api/info");
  EXPECT_EQ(info.at("record").at("mode"), "asked");
  EXPECT_EQ(info.at("memory").at("record_bytes_most").to_number<std::size_t>(), kMost);
}

// A client that leaves: what was read stays, and the request counts as ended.
TEST_F(TextsTest, AnAnswerThatIsCutOffIsKept) {
  FakeExchange x(io,
                 std::string(R"({"prompt":"ab","max_tokens":50,"ignore_eos":true,"stream":true,)") +
                     kRecord + "}");
  x.mutable_request().id = "cut";
  begin(x, kComplete);
  for (int i = 0; i < 5; ++i) turn(), engine->step();
  turn();
  FakeExchange meanwhile(io, "");
  begin(meanwhile, "/api/requests/cut/tokens");
  turn();
  EXPECT_EQ(json::parse(meanwhile.body).at("state"), "running");
  x.leave();
  finish();
  json::object after = kept("cut");
  EXPECT_EQ(after.at("state"), "ended");
  EXPECT_EQ(after.at("finish_reason"), "cancelled");
  EXPECT_GE(after.at("output_tokens").to_number<int>(), 3);
}

TEST_F(TextsTest, ReasoningAndChatsHaveKinds) {
  ask("chat",
      std::string(
          R"("messages":[{"role":"user","content":"ab"}],"max_tokens":4,"ignore_eos":true,)") +
          kRecord,
      "", "/v1/chat/completions");
  json::object text = kept("chat");
  EXPECT_TRUE(text.at("chat").as_bool());
  EXPECT_EQ(text.at("tokens").as_array().back().at("kind"), "output");
}

}  // namespace
}  // namespace vitrine
