// GET /api/steps/export?format=vtr against a real engine on a tiny model. (perfetto: steps_test.cpp)
#include <thread>

#include "server/api_test_fixture.h"

namespace vitrine {
namespace {

using test::ApiTest;
using test::FakeExchange;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<json::object> lines_of(const std::string& body) {
  std::vector<json::object> out;
  EXPECT_TRUE(body.empty() || body.back() == '\n');
  for (std::string_view rest = body; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    out.push_back(json::parse(rest.substr(0, end)).get_object());
    rest.remove_prefix(end + 1);
  }
  return out;
}

std::uint64_t number(const json::object& line, const char* name) {
  return line.at(name).to_number<std::uint64_t>();
}

class StepsExportTest : public ApiTest {
 protected:
  StepsExportTest() { api.trace.interval = std::chrono::milliseconds(1); }

  void ask(FakeExchange& x, const std::string& query, bool is_operator = true) {
    x.mutable_request().method = "GET";
    x.mutable_request().query = query;
    x.mutable_request().rights.is_operator = is_operator;
    begin(x, "/api/steps/export");
    turn();
  }
  template <typename Condition>
  void until(Condition condition) {
    for (int i = 0; i < 20000; ++i) {
      turn();
      if (condition()) return;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    FAIL() << "it never came";
  }
};

TEST_F(StepsExportTest, ARecordingHasTheLogAsItIsKept) {
  call("/v1/completions", R"({"prompt":"abcdef","max_tokens":60,"n":4,"ignore_eos":true})");
  FakeExchange x(io, "");
  ask(x, "format=vtr");
  EXPECT_EQ(x.status, 200) << x.body;
  EXPECT_EQ(x.content_type, "application/x-ndjson");
  EXPECT_TRUE(x.ended);
  EXPECT_EQ(open, 0);
  const auto lines = lines_of(x.body);
  ASSERT_EQ(lines.size(), engine->log().last_seq() + 1);
  EXPECT_EQ(lines[0].at("event"), "hello");
  EXPECT_EQ(lines[0].at("epoch"), json::value(engine->epoch()));
  EXPECT_EQ(lines[1].at("event"), "arrive");
  std::size_t steps = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    ASSERT_EQ(number(lines[i], "seq"), i);
    steps += lines[i].at("event") == "step";
  }
  EXPECT_EQ(steps, engine->steps_since(0).size());
  EXPECT_EQ(lines.back().at("event"), "end");
}

TEST_F(StepsExportTest, WithSecondsItBeginsWithASnapshotAndGrows) {
  FakeExchange work(io, R"({"prompt":"abcdefghijklmnopqrstuvwxyz","max_tokens":60,"n":4})");
  begin(work, "/v1/completions");
  for (int i = 0; i < 4; ++i) turn(), engine->step();
  const std::uint64_t before = engine->log().last_seq();
  FakeExchange x(io, "");
  ask(x, "format=vtr&seconds=60");
  EXPECT_EQ(api.trace.streams(), 1);
  while (turn(), open > 1) engine->step();
  const std::uint64_t after = engine->log().last_seq();
  api.draining = true;  // it ends at once, and whole
  until([&] { return open == 0; });
  EXPECT_TRUE(x.ended);
  EXPECT_EQ(api.trace.streams(), 0);
  const auto lines = lines_of(x.body);
  ASSERT_EQ(lines.size(), 2 + after - before);
  EXPECT_EQ(lines[0].at("event"), "hello");
  EXPECT_EQ(lines[1].at("event"), "snapshot");
  EXPECT_EQ(number(lines[1], "seq"), before);
  EXPECT_EQ(lines[1].at("running").as_array().size(), 4u);
  std::size_t pages = 0;
  for (std::size_t i = 2; i < lines.size(); ++i) {
    ASSERT_EQ(number(lines[i], "seq"), before + i - 1);
    if (const auto* list = lines[i].if_contains("pages")) pages += list->as_array().size();
    if (const auto* lost = lines[i].if_contains("lost")) {
      EXPECT_FALSE(lost->as_bool()) << i;
    }
  }
  EXPECT_GT(pages, 8u);
}

TEST_F(StepsExportTest, EndsAfterThatTimeOrWithItsClient) {
  FakeExchange x(io, ""), gone(io, "");
  ask(x, "format=vtr&seconds=1");
  ask(gone, "seconds=60&format=vtr");
  EXPECT_EQ(api.trace.streams(), 2);
  gone.leave();
  until([&] { return open == 0; });
  EXPECT_TRUE(x.ended);
  EXPECT_FALSE(gone.ended);
  EXPECT_EQ(lines_of(x.body).size(), 2u);
  EXPECT_EQ(api.trace.streams(), 0);
}

TEST_F(StepsExportTest, WhatIsLostIsTold) {
  EngineOptions options = engine->options();
  options.trace_mib = 1;
  auto made = Engine::create(test::tiny_model(), options);
  ASSERT_TRUE(made.ok());
  Engine* before = std::exchange(api.engine, made->get());
  FakeExchange x(io, "");
  ask(x, "format=vtr&seconds=60");
  while ((*made)->log().oldest().seq < 1000) {
    Request request;
    request.prompt = {5, 6, 7}, request.max_tokens = 200, request.ignore_eos = true;
    ASSERT_TRUE((*made)->submit(request).ok());
    while ((*made)->step()) continue;
  }
  const std::uint64_t last = (*made)->log().last_seq();
  api.draining = true;
  until([&] { return open == 0; });
  const auto lines = lines_of(x.body);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[2], json::parse(fmt::format(R"({{"event":"gap","from":0,"to":{}}})", last)));
  EXPECT_EQ(lines[3].at("event"), "snapshot");
  EXPECT_EQ(number(lines[3], "seq"), last);
  // What is left of the log has no beginning, and says so by its numbers.
  FakeExchange kept(io, "");
  ask(kept, "format=vtr");
  const auto rest = lines_of(kept.body);
  EXPECT_EQ(number(rest[1], "seq"), (*made)->log().oldest().seq);
  EXPECT_EQ(number(rest.back(), "seq"), last);
  EXPECT_EQ(rest.size(), 2 + last - number(rest[1], "seq"));
  EXPECT_LT(kept.largest, 256u << 10);
  api.engine = before;
}

TEST_F(StepsExportTest, IsForOperatorsAndRefusesWhatMakesNoSense) {
  for (const char* query : {"format=vtr", "format=perfetto", "format=vtr&seconds=2"}) {
    FakeExchange x(io, "");
    ask(x, query, false);
    EXPECT_EQ(x.status, 403) << query;
    EXPECT_THAT(x.body, Not(HasSubstr("hello")));
  }
  for (const std::string query :
       {"", "format=", "format=VTR", "format=vtr&seconds=0", "format=vtr&seconds=61",
        "format=vtr&seconds=-1", "format=vtr&seconds=1.5",
        "format=vtr&seconds=99999999999999999999", "format=perfetto&seconds=1", "seconds=1",
        "what=1", "format=vtr&&=", "format"}) {
    FakeExchange x(io, "");
    ask(x, query);
    EXPECT_EQ(x.status, 400) << query;
    EXPECT_THAT(x.body, HasSubstr("invalid_request_error"));
    EXPECT_LT(x.body.size(), 600u);
  }
  FakeExchange large(io, "");
  ask(large, "format=" + std::string(10000, 'x'));
  EXPECT_EQ(large.status, 400);
  EXPECT_LT(large.body.size(), 600u);
  EXPECT_EQ(api.trace.streams(), 0);
  std::vector<std::unique_ptr<TraceHub::Stream>> streams;
  while (auto stream = api.trace.open(*engine)) streams.push_back(std::move(stream));
  FakeExchange full(io, "");
  ask(full, "format=vtr&seconds=1");
  EXPECT_EQ(full.status, 429);
  streams.clear();
  EngineOptions options = engine->options();
  options.trace_mib = 0;
  auto made = Engine::create(test::tiny_model(), options);
  ASSERT_TRUE(made.ok());
  Engine* before = std::exchange(api.engine, made->get());
  for (const char* query : {"format=vtr", "format=perfetto", "format=vtr&seconds=2"}) {
    FakeExchange x(io, "");
    ask(x, query);
    EXPECT_EQ(x.status, 404) << query;
    EXPECT_THAT(x.body, HasSubstr("--trace-mib"));
  }
  api.engine = before;
}

}  // namespace
}  // namespace vitrine
