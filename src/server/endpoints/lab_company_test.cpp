// Company: requests that fill the seats.
#include "server/api_test_fixture.h"
#include "server/http/key_limits.h"
#include "server/request/limits.h"

namespace vitrine::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const std::string kCompany = "/api/lab/company";

class CompanyTest : public ApiTest {
 protected:
  // Of a call that does not wait for what it began.
  std::pair<int, std::string> ask(const std::string& body, const std::string& tenant = "") {
    FakeExchange x(io, body);
    x.mutable_request().tenant = tenant;
    if (!tenant.empty()) x.mutable_request().rights = {.is_operator = false};
    begin(x, kCompany);
    while (open > 0) turn();
    return {x.status, x.body};
  }
  std::string error_of(const std::string& body) {
    auto [status, text] = ask(body);
    EXPECT_EQ(status, 400) << text;
    return json::parse(text).at("error").at("message").as_string().c_str();
  }
  json::object get_request(const std::string& label) {
    auto x = call("/api/requests/" + label, "", "", "GET");
    EXPECT_EQ(x->status, 200) << x->body;
    return json::parse(x->body).at("requests").at(0).get_object();
  }
  // What it was queued for; counts who ran meanwhile.
  std::vector<std::string> reasons_of(const json::object& request) {
    std::vector<std::string> out;
    for (const json::value& part : request.at("life").as_array()) {
      if (part.at(0) != "queue" || part.at(3).is_null()) continue;
      out.emplace_back(part.at(3).at("reason").as_string());
      if (const json::value* list = part.at(3).as_object().if_contains("ran"))
        ran += list->as_array().size();
    }
    return out;
  }
  void drain() {
    while (engine->step()) continue;
  }
  std::size_t ran = 0;
};

TEST_F(CompanyTest, FillsTheSeatsSoThatTheNextOneWaits) {
  auto [status, text] = ask("{}");
  ASSERT_EQ(status, 200) << text;
  const json::value said = json::parse(text);
  const json::array& labels = said.at("requests").as_array();
  EXPECT_EQ(labels.size(), 12u) << "8 seats and 4 more";
  engine->step();
  Snapshot now = engine->snapshot();
  EXPECT_EQ(now.running.size(), 8u);
  EXPECT_EQ(now.waiting.size(), 4u);
  // The reader's own waits behind them.
  FakeExchange mine(io, R"({"prompt":"abc","max_tokens":2})");
  mine.mutable_request().id = "mine";
  begin(mine, "/v1/completions");
  finish();
  drain();
  const json::object one = get_request("mine");
  EXPECT_THAT(reasons_of(one), Contains("behind"));
  EXPECT_GT(ran, 0);
  // The first of those that found no seat.
  EXPECT_THAT(reasons_of(get_request(labels.at(8).as_string().c_str())), Contains("seats"));
  EXPECT_THAT(json::serialize(one.at("why")), HasSubstr("to the first token: queued"));
  // Each of them is an ordinary request, with its own prompt.
  for (const json::value& label : labels) {
    const json::object each = get_request(label.as_string().c_str());
    EXPECT_EQ(each.at("finish_reason"), "length");
    EXPECT_EQ(each.at("cached_tokens"), 0);
    EXPECT_EQ(each.at("completion_tokens"), said.at("max_tokens"));
  }
}

TEST_F(CompanyTest, ComesOnlyWhileNothingElseRuns) {
  ASSERT_EQ(ask(R"({"n":1})").first, 200);
  auto [status, text] = ask(R"({"n":1})");
  EXPECT_EQ(status, 409) << text;
  EXPECT_THAT(text, HasSubstr("found 1 request"));
  drain();
  EXPECT_EQ(ask(R"({"n":1})").first, 200);
  drain();
}

TEST_F(CompanyTest, ARefusalCostsNothing) {
  KeyLimits limits;
  const auto ask_limited = [&] {
    FakeExchange x(io, R"({"n":1,"max_tokens":100})");
    HttpRequest& http = x.mutable_request();
    http.tenant = "op", http.rights.tpm_limit = 10000;
    std::optional<OverLimit> over;
    http.use = limits.begin("op", http.rights, over);
    begin(x, kCompany);
    while (open > 0) turn();
    Headers headers;
    http.use->add_headers(headers);
    return std::pair(x.status, std::stoi(headers.at(1).second));  // what remains
  };
  const auto [status, left] = ask_limited();
  EXPECT_EQ(status, 200);
  EXPECT_LT(left, 9900);
  const auto [refused, still_left] = ask_limited();
  EXPECT_EQ(refused, 409);
  EXPECT_GE(still_left, left);
  drain();
}

TEST_F(CompanyTest, IsForOperatorsAndCanBeSwitchedOff) {
  EXPECT_EQ(ask("{}", "ann").first, 403);
  api.lab = false;
  EXPECT_EQ(ask("{}").first, 403);
  EXPECT_THAT(ask("{}").second, HasSubstr("--no-lab"));
  EXPECT_TRUE(engine->idle());
}

TEST_F(CompanyTest, IsBounded) {
  EXPECT_THAT(error_of(R"({"n":0})"), HasSubstr("n: found 0, allowed whole numbers from 1 to 512"));
  EXPECT_THAT(error_of(R"({"n":1e9})"), HasSubstr("allowed whole numbers from 1 to 512"));
  EXPECT_THAT(error_of(R"({"max_tokens":257})"), HasSubstr("max_tokens"));
  EXPECT_THAT(error_of(R"({"max_tokens":"many"})"), HasSubstr("max_tokens"));
  EXPECT_THAT(error_of(R"({"prompt":")" + std::string(kMostCompanyPrompt + 1, 'a') + "\"}"),
              HasSubstr("prompt"));
  EXPECT_THAT(error_of(R"({"prompt":")" + std::string(400, 'a') + "\"}"), HasSubstr("the context"));
  EXPECT_THAT(error_of(R"({"who":1})"), HasSubstr("who"));
  error_of("[]");
  error_of("");
  EXPECT_TRUE(engine->idle());
}

}  // namespace
}  // namespace vitrine::test
