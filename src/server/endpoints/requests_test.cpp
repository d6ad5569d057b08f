// What /api/requests/ID tells of a life, and to whom.
#include "base/process_clock.h"
#include "server/api_test_fixture.h"

namespace vitrine::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kComplete = "/v1/completions";

class RequestsTest : public ApiTest {
 protected:
  // As the connection leaves it.
  void came(FakeExchange& x, const std::string& label, const std::string& tenant = "") {
    HttpRequest& http = x.mutable_request();
    http.id = label, http.tenant = tenant;
    if (!tenant.empty()) http.rights = {.is_operator = false};
    http.received_ns = process_ns(), http.body_ns = process_ns(), http.taken_ns = process_ns();
    http.written = written = std::make_shared<Written>();
  }
  void wrote(std::int64_t bytes) {
    written->first_ns = written->last_ns = process_ns();
    written->bytes = bytes, written->done = true;
  }
  std::pair<int, std::string> look(const std::string& label, const std::string& tenant = "") {
    FakeExchange x(io, "");
    x.mutable_request().method = "GET";
    x.mutable_request().tenant = tenant;
    if (!tenant.empty()) x.mutable_request().rights = {.is_operator = false};
    begin(x, "/api/requests/" + label);
    while (open > 0) turn();
    return {x.status, x.body};
  }
  json::object one(const std::string& label, const std::string& tenant = "") {
    auto [status, text] = look(label, tenant);
    EXPECT_EQ(status, 200) << text;
    return json::parse(text).at("requests").at(0).get_object();
  }
  // Checks that the parts follow each other; the time of each kind.
  static std::map<std::string, std::int64_t> kinds(const json::object& request,
                                                   std::string_view from, std::string_view to) {
    const json::object& stamps = request.at("stamps").get_object();
    std::int64_t at = stamps.at(from).as_int64();
    std::map<std::string, std::int64_t> out;
    for (const json::value& part : request.at("life").as_array()) {
      EXPECT_EQ(part.at(1).as_int64(), at);
      at += part.at(2).as_int64();
      out[part.at(0).as_string().c_str()] += part.at(2).as_int64();
    }
    EXPECT_EQ(at, stamps.at(to).as_int64());
    return out;
  }

  std::shared_ptr<Written> written;
};

TEST_F(RequestsTest, ALifeGoesFromTheFirstByteToTheLast) {
  FakeExchange x(
      io, R"({"messages":[{"role":"user","content":"abc"}],"max_tokens":5,"regex":"[a-z]*"})");
  came(x, "mine");
  begin(x, "/v1/chat/completions");
  finish();
  EXPECT_EQ(x.status, 200) << x.body;
  EXPECT_EQ(one("mine").at("written"), false);
  wrote(321);
  const json::object told = one("mine");
  EXPECT_EQ(told.at("written"), true);
  EXPECT_EQ(told.at("bytes_out"), 321);
  auto all = kinds(told, "received", "last_write");
  for (const char* kind : {"read", "handoff", "parse", "template", "tokenize", "compile", "queue",
                           "prefill", "decode", "write"})
    EXPECT_GT(all[kind], 0) << kind;
  // What it cost is what its steps say.
  std::int64_t shares = 0;
  for (const json::value& step : told.at("records").as_array()) {
    shares += step.at("share_ns").as_int64();
    EXPECT_EQ(step.at("company"), json::array());
  }
  const json::object& cost = told.at("shares").get_object();
  EXPECT_EQ(cost.at("input_ns").as_int64() + cost.at("output_ns").as_int64(), shares);
  EXPECT_EQ(cost.at("wasted_ns"), 0);
  const std::string why = json::serialize(told.at("why"));
  EXPECT_THAT(why, HasSubstr("prefill: "));
  EXPECT_THAT(why, HasSubstr("decode: "));
}

TEST_F(RequestsTest, AlsoOfOneThatWasRefused) {
  FakeExchange x(io, R"({"prompt":"abc","max_tokens":"many"})");
  came(x, "wrong", "ann");
  begin(x, kComplete);
  finish();
  EXPECT_EQ(x.status, 400);
  wrote(99);
  const json::object told = one("wrong", "ann");
  EXPECT_EQ(told.at("state"), "refused");
  auto all = kinds(told, "received", "last_write");
  EXPECT_GT(all["write"], 0);
  EXPECT_FALSE(all.contains("queue"));
  EXPECT_THAT(told.at("why").at(0).as_string().c_str(), HasSubstr("refused: max_tokens: found"));
  EXPECT_EQ(look("wrong", "bob").first, 404);
  EXPECT_EQ(look("wrong").first, 200) << "an operator sees all";
  // Only the last ones are kept.
  for (std::size_t i = 0; i < Refused::kMost; ++i) {
    FakeExchange more(io, "{");
    came(more, "more");
    begin(more, kComplete);
    finish();
  }
  EXPECT_EQ(look("wrong").first, 404);
}

// What it reads of the log is accounted for before it is read, and a long answer goes out as it is taken.
TEST_F(RequestsTest, AsksForRoomAndIsSentInPieces) {
  FakeExchange x(io,
                 R"({"prompt":"abcdef","max_tokens":100,"ignore_eos":true,"n":8,"temperature":1})");
  came(x, "many");
  begin(x, kComplete);
  finish();
  const auto look_with = [&](std::int64_t most) {
    auto out = std::make_unique<FakeExchange>(io, "");
    out->mutable_request().method = "GET";
    out->most_held = most;
    begin(*out, "/api/requests/many");
    while (open > 0) turn();
    return out;
  };
  auto told = look_with(INT64_MAX);
  EXPECT_EQ(told->status, 200);
  EXPECT_TRUE(told->streaming && told->ended);
  EXPECT_LT(told->largest, std::size_t{128} << 10);
  std::size_t records = 0;
  const json::value all = json::parse(told->body);
  ASSERT_EQ(all.at("requests").as_array().size(), 8u);
  for (const json::value& each : all.at("requests").as_array()) {
    for (const json::value& step : each.at("records").as_array()) {
      ++records;
      EXPECT_EQ(step.at("company").as_array().size(),
                step.at("sequences").to_number<std::size_t>() - 1);
    }
  }
  EXPECT_GE(records, std::size_t{8} * 100);
  // Of each step once the record, and of each choice its own entry.
  EXPECT_GT(told->held, static_cast<std::int64_t>(records * sizeof(StepEntry)));
  EXPECT_EQ(look_with(told->held - 1)->status, 503);
}

// The seats are one key's; another takes some of them, and its own waits for the rest.
TEST_F(RequestsTest, OfOthersAKeyHearsNothing) {
  std::vector<std::unique_ptr<FakeExchange>> calls;
  const auto ask = [&](const std::string& label, const std::string& tenant, int n) {
    calls.push_back(std::make_unique<FakeExchange>(
        io, fmt::format(R"({{"prompt":"abcdef","max_tokens":60,"ignore_eos":true,"n":{}}})", n)));
    came(*calls.back(), label, tenant);
    begin(*calls.back(), kComplete);
  };
  ask("ann-secret", "ann", 8);
  for (int i = 0; i < 3; ++i) turn(), engine->step();
  ask("bob-secret", "bob", 8);
  finish();
  bool preempted = false, waited = false;
  const auto requests = [&](const std::string& label, const std::string& tenant) {
    return json::parse(look(label, tenant).second).at("requests").as_array();
  };
  for (const json::value& r : requests("ann-secret", "ann"))
    for (const json::value& part : r.at("life").as_array())
      if (part.at(0) == "preempted") {
        preempted = true;
        EXPECT_TRUE(part.at(3).at("by").is_null()) << part;
        EXPECT_THAT(json::serialize(r.at("why")),
                    HasSubstr("preempted once by another key's request"));
      }
  EXPECT_TRUE(preempted) << "the test shows nothing";
  for (const auto& [label, tenant, other] : {std::tuple("ann-secret", "ann", "bob-secret"),
                                             std::tuple("bob-secret", "bob", "ann-secret")}) {
    const std::string text = look(label, tenant).second;
    EXPECT_THAT(text, Not(HasSubstr(other)));
    for (const char* field : {"company", "share", "weight_bytes"})
      EXPECT_THAT(text, Not(HasSubstr(field)));
    for (const json::value& r : requests(label, tenant))
      for (const json::value& part : r.at("life").as_array()) {
        if (part.at(3).is_null()) continue;
        const json::object& about = part.at(3).as_object();
        if (const json::value* behind = about.if_contains("behind")) {
          waited = true;
          EXPECT_TRUE(behind->at(0).is_null() || behind->at(0) == label) << part;
        }
        if (const json::value* ran = about.if_contains("ran")) {
          for (const json::value& each : ran->as_array()) EXPECT_EQ(each.at(0), label);
        }
      }
  }
  EXPECT_TRUE(waited);
  // An operator hears who it was.
  bool named = false;
  for (const json::value& r : requests("ann-secret", ""))
    for (const json::value& part : r.at("life").as_array())
      if (part.at(0) == "preempted") named |= part.at(3).at("by").is_number();
  EXPECT_TRUE(named);
}

}  // namespace
}  // namespace vitrine::test
