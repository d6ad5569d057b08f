// GET /api/steps against a real engine on a tiny model.
#include <map>
#include <set>

#include "server/api_test_fixture.h"

namespace vitrine {
namespace {

using test::ApiTest;
using test::FakeExchange;
using ::testing::HasSubstr;

class StepsTest : public ApiTest {
 protected:
  std::unique_ptr<FakeExchange> ask(const std::string& path, const std::string& query,
                                    bool is_operator = true) {
    auto x = std::make_unique<FakeExchange>(io, "");
    x->mutable_request().query = query;
    x->mutable_request().rights.is_operator = is_operator;
    begin(*x, path);
    finish();
    return x;
  }
  json::value steps(const std::string& query) {
    auto x = ask("/api/steps", query);
    EXPECT_EQ(x->status, 200) << x->body;
    return json::parse(x->body);
  }
};

TEST_F(StepsTest, AreWhatTheEngineRecorded) {
  call("/v1/completions", R"({"prompt":"abcdef","max_tokens":6,"n":2})");
  const json::value all = steps("");
  const auto records = engine->steps_since(0);
  ASSERT_EQ(all.at("steps").as_array().size(), records.size());
  ASSERT_GE(records.size(), 6u);
  EXPECT_EQ(all.at("next").to_number<std::uint64_t>(), records.back().step + 1);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const json::value& told = all.at("steps").at(i);
    const StepRecord& r = records[i];
    EXPECT_EQ(told.at("step").to_number<std::uint64_t>(), r.step);
    EXPECT_EQ(told.at("wall_ns").as_int64(), r.wall_ns);
    EXPECT_EQ(told.at("rows").at("prefill").as_int64(), r.prefill_tokens);
    EXPECT_EQ(told.at("rows").at("decode").as_int64(), r.decode_tokens);
    EXPECT_TRUE(told.at("blocked").is_null());
    ASSERT_EQ(told.at("entries").as_array().size(), r.entries.size());
    std::int64_t shares = told.at("padding_share_ns").as_int64();
    for (std::size_t k = 0; k < r.entries.size(); ++k) {
      const json::array& entry = told.at("entries").at(k).as_array();
      ASSERT_EQ(entry.size(), 13u);
      shares += entry[9].as_int64();
      EXPECT_EQ(entry[0].to_number<std::uint64_t>(), r.entries[k].sequence);
      EXPECT_EQ(entry[1].as_int64(), r.entries[k].slot);
      EXPECT_EQ(entry[4].as_int64(), r.entries[k].tokens);
      EXPECT_EQ(entry[9].as_int64(), r.entries[k].share_ns);
      EXPECT_EQ(entry[10].as_int64(), r.entries[k].again);
      EXPECT_EQ(entry[11].as_int64(), r.entries[k].kept);
      EXPECT_EQ(entry[12].as_int64(), r.entries[k].drawn);
    }
    EXPECT_EQ(shares, told.at("wall_ns").as_int64());
    EXPECT_GT(told.at("flops_per_byte").to_number<double>(), 0);
  }
  EXPECT_EQ(json::parse(ask("/api/steps/2", "")->body), all.at("steps").at(2));
}

TEST_F(StepsTest, AreHandedOutFromANumberOn) {
  call("/v1/completions", R"({"prompt":"abcdef","max_tokens":9})");
  const json::value some = steps("from=3&limit=2");
  ASSERT_EQ(some.at("steps").as_array().size(), 2u);
  EXPECT_EQ(some.at("steps").at(0).at("step").as_int64(), 3);
  EXPECT_EQ(some.at("next").as_int64(), 5);
  // Nothing new: the same number again.
  const json::value none = steps("from=1000000");
  EXPECT_TRUE(none.at("steps").as_array().empty());
  EXPECT_EQ(none.at("next").as_int64(), 1000000);
}

TEST_F(StepsTest, SayWhyTheFirstWaits) {
  std::vector<std::unique_ptr<FakeExchange>> many;
  for (int i = 0; i < 3; ++i) {
    many.push_back(
        std::make_unique<FakeExchange>(io, R"({"prompt":"abcdef","max_tokens":30,"n":8})"));
    begin(*many.back(), "/v1/completions");
  }
  turn();
  for (int i = 0; i < 3; ++i) engine->step(), turn();
  FakeExchange x(io, "");
  begin(x, "/api/snapshot");
  turn();
  const json::value now = json::parse(x.body);
  ASSERT_GT(now.at("num_waiting").as_int64(), 0);
  EXPECT_EQ(now.at("blocked").at("reason"), "seats");
  finish();
  EXPECT_TRUE(get("/api/snapshot").at("blocked").is_null());
}

// By the rules of Chrome's format: slices of a track ascend and are nested, every track is named.
TEST_F(StepsTest, AreATraceForPerfetto) {
  call("/v1/completions", R"({"prompt":"abcdef","max_tokens":6,"n":3})");
  auto x = ask("/api/steps/export", "format=perfetto");
  ASSERT_EQ(x->status, 200) << x->body;
  const json::value trace = json::parse(x->body);
  const auto records = engine->steps_since(0);
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::pair<double, double>>> open;
  std::map<std::pair<std::int64_t, std::int64_t>, double> last;
  std::set<std::pair<std::int64_t, std::int64_t>> named;
  std::size_t whole = 0, entries = 0;
  double sum = 0;
  for (const json::value& event : trace.at("traceEvents").as_array()) {
    const std::string phase(event.at("ph").as_string());
    const auto pid = event.at("pid").to_number<std::int64_t>();
    if (phase == "C") continue;
    const std::pair track{pid, event.at("tid").to_number<std::int64_t>()};
    if (phase == "M") {
      named.insert(track);
      continue;
    }
    ASSERT_EQ(phase, "X");
    EXPECT_TRUE(named.contains(track)) << event;
    const double ts = event.at("ts").to_number<double>(), dur = event.at("dur").to_number<double>();
    EXPECT_GE(ts, last[track]);
    EXPECT_GE(dur, 0);
    last[track] = ts;
    auto& stack = open[track];
    while (!stack.empty() && ts >= stack.back().second - 1e-6) stack.pop_back();
    if (!stack.empty()) {
      EXPECT_LE(ts + dur, stack.back().second + 1e-3) << "not nested";
    }
    stack.emplace_back(ts, ts + dur);
    const std::string name(event.at("name").as_string());
    whole += name.starts_with("step ");
    entries += pid == 2;
    if (name == "forward") sum += dur;
  }
  std::size_t expected = 0;
  std::int64_t forward = 0;
  for (const StepRecord& r : records) expected += r.entries.size(), forward += r.forward_ns;
  EXPECT_EQ(whole, records.size());
  EXPECT_EQ(entries, expected);
  EXPECT_NEAR(sum, static_cast<double>(forward) / 1e3, 1e-3 * static_cast<double>(records.size()));
  EXPECT_EQ(ask("/api/steps/export", "format=perfetto", false)->status, 403);
}

TEST_F(StepsTest, RefuseWhatMakesNoSense) {
  for (const char* query : {"from=-1", "from=", "from=1x", "from=99999999999999999999", "limit=0",
                            "limit=1025", "limit=1.5", "what=1", "=", "from", "from=1&&"}) {
    auto x = ask("/api/steps", query);
    EXPECT_EQ(x->status, 400) << query;
    EXPECT_THAT(x->body, HasSubstr("invalid_request_error"));
    EXPECT_LT(x->body.size(), 600u);
  }
  EXPECT_EQ(ask("/api/steps", std::string(10000, 'x'))->status, 400);
  EXPECT_LT(ask("/api/steps", std::string(10000, 'x'))->body.size(), 600u);
  for (const char* name : {"x", "-1", "1/2", "99999999999999999999", "%31"})
    EXPECT_EQ(ask(std::string("/api/steps/") + name, "")->status, 400) << name;
  EXPECT_EQ(ask("/api/steps/7", "")->status, 404);
}

TEST_F(StepsTest, AreForOperators) {
  call("/v1/completions", R"({"prompt":"abcdef","max_tokens":3})");
  for (const char* path : {"/api/steps", "/api/steps/0"}) {
    auto x = ask(path, "", false);
    EXPECT_EQ(x->status, 403) << path;
    EXPECT_THAT(x->body, ::testing::Not(HasSubstr("wall_ns")));
  }
}

}  // namespace
}  // namespace vitrine
