// What one API key can find out about another, and what it may use.
#include <map>

#include "grammar/compiler.h"
#include "server/api_test_fixture.h"
#include "server/http/key_limits.h"

namespace vitrine {
namespace {

using test::ApiTest;
using test::FakeExchange;
using test::token_text;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kComplete = "/v1/completions";

// Known tokens and a filler, and what the answer says about the cache: nothing of another's prompt.
TEST_F(ApiTest, AnotherKeysPromptCannotBeRecovered) {
  const std::string secret = "thequickbrownfoxjumpsoverit";
  auto ask = [&](const char* tenant, const std::string& prompt) {
    auto x =
        call(kComplete, R"({"max_tokens":1,"vitrine":{"timings":true},"prompt":")" + prompt + "\"}",
             tenant);
    EXPECT_EQ(x->status, 200) << x->body;
    return json::parse(x->body);
  };
  auto recovered = [&](const char* tenant) {
    std::string known;
    while (known.size() < 16) {
      auto answer = ask(tenant, known + std::string(24 - known.size(), '#'));
      const json::value& cache = answer.at("vitrine").at("choices").at(0).at("cache");
      const json::value* there = cache.as_object().if_contains("there");
      if (there == nullptr) break;
      known += token_text(static_cast<int>(there->as_int64()));
    }
    return known;
  };
  ask("ann", secret);
  EXPECT_EQ(recovered("bob"), "");
  api.share_cache = true;
  ask("ann", secret);
  EXPECT_EQ(recovered("carl"), secret.substr(0, 15)) << "the attack works where it may";
}

TEST_F(ApiTest, ConstraintsAreCompiledForEachKey) {
  auto constraint = [&](const char* tenant) {
    ConstraintSpec spec{.kind = ConstraintSpec::Kind::kRegex, .text = "a+b"};
    auto made = api.constraints.compile(api.tokenizer, spec, api.scope(tenant));
    EXPECT_TRUE(made.ok());
    return *made;
  };
  auto ann = constraint("ann");
  EXPECT_EQ(constraint("ann"), ann) << "found again";
  EXPECT_NE(constraint("bob"), ann);
  api.share_cache = true;
  EXPECT_EQ(constraint("ann"), constraint("bob"));
}

// Every GET endpoint, as a key that has done nothing, while another has requests of every state.
TEST_F(ApiTest, NothingIsToldAboutOtherKeys) {
  auto crawl = [&](const char* tenant, const std::string& path) {
    return call(path, "", tenant, "GET");
  };
  auto paths = [&] {
    std::vector<std::string> out;
    for (const Route& r : routes)
      if (r.method == "GET")
        for (const char* name : {"1", "ann-1"}) {
          std::string path = r.path;
          if (const auto star = path.find('*'); star != path.npos) path.replace(star, 1, name);
          out.push_back(path);
        }
    return out;
  }();
  auto without_clock = [](std::string text) {
    auto at = text.find("\"uptime_s\"");
    return at == text.npos ? text : text.erase(at, text.find_first_of(",}", at) - at);
  };
  std::map<std::string, std::pair<int, std::string>> before;
  for (const auto& path : paths) {
    auto x = crawl("bob", path);
    before[path] = {x->status, without_clock(x->body)};
  }
  FakeExchange running(io, R"({"prompt":"abcdefghijklmnopqrstuvw","max_tokens":40,"n":12,)"
                           R"("vitrine":{"record":true}})");
  running.mutable_request().tenant = "ann";
  running.mutable_request().id = "ann-1";
  begin(running, kComplete);
  for (int i = 0; i < 5; ++i) turn(), engine->step();
  auto look = [&](const std::string& path, bool all) {
    FakeExchange x(io, "");
    x.mutable_request().method = "GET";
    x.mutable_request().tenant = "bob";
    x.mutable_request().rights.is_operator = all;
    begin(x, path);
    turn();
    return std::pair{x.status, without_clock(x.body)};
  };
  for (const auto& path : paths) EXPECT_EQ(look(path, false), before[path]) << path;
  EXPECT_THAT(look("/api/snapshot", true).second, HasSubstr("ann-1"));
  EXPECT_EQ(look("/api/requests/ann-1", true).first, 200);
  EXPECT_EQ(look("/metrics", true).first, 200);
  EXPECT_EQ(look("/metrics", false).first, 403);
  finish();
  for (const auto& path : paths) EXPECT_EQ(look(path, false), before[path]) << path;
  // Nor does its own account count what others do.
  auto own = call(kComplete, R"({"prompt":"a","max_tokens":1,"vitrine":{"timings":true}})", "bob");
  for (const char* field : {"\"id\":1", "batch_mean", "batch_max", "weight_bytes"})
    EXPECT_THAT(own->body, Not(HasSubstr(field)));
  auto steps = call("/api/requests", "", "bob");
  for (const char* field : {"\"id\"", "batch_", "weight_bytes", "ann"})
    EXPECT_THAT(steps->body, Not(HasSubstr(field)));
}

TEST_F(ApiTest, TokensCountAgainstTheKey) {
  KeyLimits limits;
  std::string name = "ann";
  KeyRights rights{.is_operator = false, .min_priority = 0, .tpm_limit = 30};
  auto ask = [&](const std::string& body, const std::string& path = kComplete) {
    auto x = std::make_unique<FakeExchange>(io, body);
    std::optional<OverLimit> over;
    x->mutable_request().tenant = name, x->mutable_request().rights = rights;
    x->mutable_request().use = limits.begin(name, rights, over);
    begin(*x, path);
    finish();
    return x;
  };
  auto left = [&] {
    std::optional<OverLimit> over;
    Headers headers;
    limits.begin(name, rights, over)->add_headers(headers);
    for (const auto& [name, value] : headers)
      if (name == "x-ratelimit-remaining-tokens") return std::stoi(value);
    return -1;
  };
  EXPECT_EQ(ask(R"({"prompt":"abc","max_tokens":4,"n":3,"ignore_eos":true})")->status, 200);
  EXPECT_NEAR(left(), 15, 1);
  auto over = ask(R"({"prompt":"abc","max_tokens":20})");
  EXPECT_EQ(over->status, 429);
  json::value error = json::parse(over->body).at("error");
  EXPECT_EQ(error.at("code"), "rate_limit_exceeded");
  EXPECT_EQ(error.at("type"), "rate_limit_error");
  EXPECT_THAT(error.at("message").as_string().c_str(), HasSubstr("tpm_limit"));
  // Only what was written counts in the end: here every token ends the text.
  std::string every = "0";
  for (int id = 1; id < test::kVocab; ++id) every += "," + std::to_string(id);
  EXPECT_EQ(ask(R"({"prompt":"ab","max_tokens":10,"stop_token_ids":[)" + every + "]}")->status,
            200);
  EXPECT_GE(left(), 3);
  // Inputs of embeddings count all, also those beyond what a minute allows: the key waits for them.
  name = "bob", rights.tpm_limit = 3000;
  std::string inputs = "\"abcdefghij\"";
  for (int i = 1; i < 600; ++i) inputs += ",\"abcdefghij\"";
  EXPECT_EQ(ask("{\"input\":[" + inputs + "]}", "/v1/embeddings")->status, 200);
  EXPECT_EQ(left(), 0);
  auto later = ask(R"({"prompt":"a","max_tokens":1})");
  EXPECT_EQ(later->status, 429);
  EXPECT_GT(std::stoi(later->headers.at(0).second), 50) << "6,600 tokens are over two minutes";
}

}  // namespace
}  // namespace vitrine
