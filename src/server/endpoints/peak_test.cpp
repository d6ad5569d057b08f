// POST /api/peak against a real engine on a tiny model.
#include <thread>

#include "server/recorded_testing.h"

namespace vitrine {
namespace {

using test::ApiTest;
using test::FakeExchange;
using test::kComplete;
using ::testing::HasSubstr;

TEST_F(ApiTest, PeaksAreMeasuredAndKept) {
  EXPECT_TRUE(get("/api/info").at("peaks").is_null());
  const json::object first = get("/api/peak", "{}");
  EXPECT_GT(first.at("gflop_s").as_double(), 0);
  EXPECT_GT(first.at("read_gb_s").as_double(), 0);
  EXPECT_EQ(get("/api/peak", "{}"), first) << "not measured a second time";
  EXPECT_EQ(get("/api/info").at("peaks").as_object(), first);
  const json::object again = get("/api/peak", R"({"again":true})");
  EXPECT_GE(again.at("gflop_s").as_double(), first.at("gflop_s").as_double()) << "the highest";
  EXPECT_GE(again.at("read_gb_s").as_double(), first.at("read_gb_s").as_double());
}

TEST_F(ApiTest, PeaksAreNotMeasuredWhileSomethingRuns) {
  FakeExchange running(io, R"({"prompt":"abc","max_tokens":20})");
  begin(running, kComplete);
  turn();  // it waits
  for (int i = 0; i < 4; ++i, turn(), engine->step()) {
    FakeExchange x(io, "{}");
    begin(x, "/api/peak");
    turn();
    EXPECT_EQ(x.status, 409) << x.body;
    EXPECT_THAT(x.body, HasSubstr("busy"));
  }
  finish();
  EXPECT_TRUE(get("/api/info").at("peaks").is_null());
  EXPECT_EQ(call("/api/peak", "{}")->status, 200);
}

TEST_F(ApiTest, WrongPeakRequestsAreRefused) {
  for (const char* body : {"", "[]", "{", R"({"again":1})", R"({"again":"yes"})",
                           R"({"gflop_s":1})", R"({"again":{}})"})
    EXPECT_EQ(call("/api/peak", body)->status, 400) << body;
  EXPECT_EQ(call("/api/peak", "{}", "bob")->status, 403);
  EXPECT_EQ(call("/api/peak", R"({"again":true})", "bob")->status, 403);
  EXPECT_TRUE(get("/api/info").at("peaks").is_null());
}

// Whoever submits while peaks are measured waits, and gets the same tokens; no step runs meanwhile.
TEST_F(ApiTest, StepsWaitForTheMeasurement) {
  const std::vector<std::int32_t> prompt{4, 5, 6, 7};
  const auto expected = tokens(prompt, 12);
  ASSERT_TRUE(engine->start().ok());
  for (int round = 0; round < 3; ++round) {
    Result<Peak> found = Peak{};
    std::thread measuring([&] { found = engine->measure_peak(); });
    Request r;
    r.prompt = prompt, r.max_tokens = 12, r.sampling = api.defaults, r.ignore_eos = true;
    auto stream = *engine->submit(std::move(r));
    std::vector<std::int32_t> got;
    stream->wait();
    while (auto event = stream->next()) got.push_back(event->token);
    measuring.join();
    EXPECT_EQ(got, expected);
    EXPECT_TRUE(found.ok() || found.error().code == ErrorCode::kBusy);
  }
}

}  // namespace
}  // namespace vitrine
