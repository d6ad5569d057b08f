// GET /api/trace and the full snapshot against a real engine on a tiny model.
#include <algorithm>
#include <map>
#include <thread>

#include "server/api_test_fixture.h"

namespace vitrine {
namespace {

using test::ApiTest;
using test::FakeExchange;
using ::testing::HasSubstr;
using ::testing::Not;

struct Told {
  std::string event;
  std::uint64_t id = 0;
  json::object data;
};

std::vector<Told> told(const std::string& body) {
  std::vector<Told> out;
  for (std::string_view rest = body; !rest.empty();) {
    const std::size_t end = rest.find("\n\n");
    if (end == rest.npos) break;  // the rest is still to come
    Told one;
    for (std::string_view frame = rest.substr(0, end); !frame.empty();) {
      const std::string_view line = frame.substr(0, frame.find('\n'));
      frame.remove_prefix(std::min(line.size() + 1, frame.size()));
      const std::string_view value = line.substr(line.find(": ") + 2);
      if (line.starts_with("event: ")) one.event = value;
      if (line.starts_with("id: ")) one.id = std::stoull(std::string(value));
      if (line.starts_with("data: ")) one.data = json::parse(value).get_object();
    }
    out.push_back(std::move(one));
    rest.remove_prefix(end + 2);
  }
  return out;
}

class TraceTest : public ApiTest {
 protected:
  TraceTest() { api.trace.interval = std::chrono::milliseconds(1); }
  ~TraceTest() override {  // NOLINT(bugprone-exception-escape): of a test
    for (auto& x : exchanges) x->leave();
    until([&] { return open == 0; });
  }

  FakeExchange& watch(const std::string& query = "", bool is_operator = true) {
    auto& x = *exchanges.emplace_back(std::make_unique<FakeExchange>(io, ""));
    x.mutable_request().method = "GET";
    x.mutable_request().query = query;
    x.mutable_request().rights.is_operator = is_operator;
    begin(x, "/api/trace");
    return x;
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
  // Until the stream has told what there is.
  std::vector<Told> all(FakeExchange& x) {
    until([&] {
      const auto list = told(x.body);  // a ping, which has no number, may be the last
      return std::any_of(list.begin(), list.end(),
                         [&](const Told& t) { return t.id >= engine->log().last_seq(); });
    });
    return told(x.body);
  }
  void work(const std::string& body) {
    FakeExchange x(io, body);
    const int before = open;
    begin(x, "/v1/completions");
    while (turn(), open > before) engine->step();
    EXPECT_EQ(x.status, 200) << x.body;
  }

  std::vector<std::unique_ptr<FakeExchange>> exchanges;
};

TEST_F(TraceTest, BeginsWithASnapshotAndTellsAllThatFollows) {
  FakeExchange& x = watch();
  work(R"({"prompt":"abcdefghijklmnopqrstuvwxyz","max_tokens":20,"n":4})");
  const auto list = all(x);
  EXPECT_EQ(x.content_type, "text/event-stream; charset=utf-8");
  ASSERT_GT(list.size(), 20u);
  EXPECT_EQ(list[0].event, "hello");
  EXPECT_EQ(list[0].data.at("epoch"), json::value(engine->epoch()));
  EXPECT_EQ(list[0].data.at("model"), "tiny");
  EXPECT_EQ(list[0].data.at("viewer").at("role"), "operator");
  EXPECT_EQ(list[1].event, "snapshot");
  EXPECT_EQ(list[1].data.at("seq").to_number<std::uint64_t>(), list[1].id);
  EXPECT_TRUE(list[1].data.at("running").as_array().empty());
  std::map<std::string, int> events;
  std::map<std::string, int> ops;
  std::uint64_t seq = list[1].id;
  std::int64_t drawn = 0, shares = 0, walls = 0;
  for (std::size_t i = 2; i < list.size(); ++i) {
    ASSERT_EQ(list[i].id, ++seq);
    const json::object& data = list[i].data;
    ASSERT_EQ(data.at("seq").to_number<std::uint64_t>(), seq);
    ++events[list[i].event];
    if (list[i].event == "step" || list[i].event == "plan") {
      EXPECT_EQ(data.at("lost"), false);
      for (const json::value& op : data.at("pages").as_array())
        ++ops[std::string(op.at(0).as_string())];
    }
    if (list[i].event != "step") continue;
    walls += data.at("wall_ns").as_int64();
    shares += data.at("padding_share_ns").as_int64();
    for (const json::value& entry : data.at("entries").as_array()) {
      ASSERT_EQ(entry.as_array().size(), 13u);
      shares += entry.at(9).as_int64(), drawn += entry.at(12).as_int64();
    }
  }
  EXPECT_EQ(events["arrive"], 4);
  EXPECT_EQ(events["end"], 4);
  EXPECT_EQ(events["step"], static_cast<int>(engine->snapshot().step));
  EXPECT_EQ(drawn, 80);
  EXPECT_EQ(shares, walls);
  EXPECT_EQ(ops["copy"], 3) << "the last holder of the begun page keeps it";
  EXPECT_GT(ops["take"], 3);
  EXPECT_EQ(ops["share"] % 3, 0);
  EXPECT_GT(ops["name"], 0);
}

TEST_F(TraceTest, GoesOnWhereItWas) {
  FakeExchange& first = watch();
  work(R"({"prompt":"abc","max_tokens":10})");
  const auto before = all(first);
  first.leave();
  until([&] { return open == 0; });
  EXPECT_EQ(api.trace.streams(), 0);
  work(R"({"prompt":"abcdefghijklmnopqrs","max_tokens":10})");
  const std::uint64_t from = before[before.size() - 3].id;
  FakeExchange& second = watch("from=" + std::to_string(from));
  const auto after = all(second);
  ASSERT_GT(after.size(), 5u);
  EXPECT_EQ(after[0].event, "hello");
  for (std::size_t i = 1; i < after.size(); ++i) EXPECT_EQ(after[i].id, from + i);
  EXPECT_EQ(after[1].data, before[before.size() - 2].data);
  // Beside one that reads already, and from the very end.
  const std::uint64_t newest = engine->log().last_seq();
  FakeExchange& third = watch("from=" + std::to_string(newest));
  until([&] { return !told(third.body).empty(); });
  work(R"({"prompt":"x","max_tokens":2})");
  EXPECT_EQ(all(third).at(1).id, newest + 1);
}

TEST_F(TraceTest, WhatCannotBeGoneOnWithBeginsWithASnapshot) {
  // Nobody watched: changes of pages were not told.
  work(R"({"prompt":"abcdefghijklmnopqrs","max_tokens":30})");
  for (const char* from : {"1", "1000000", "18446744073709551615", "18446744073709551614"}) {
    FakeExchange& x = watch(std::string("from=") + from);
    const auto list = all(x);
    ASSERT_GE(list.size(), 3u) << from;
    EXPECT_EQ(list[1].event, "gap");
    EXPECT_EQ(std::to_string(list[1].data.at("from").to_number<std::uint64_t>()), from);
    EXPECT_EQ(list[1].data.at("to").to_number<std::uint64_t>(), engine->log().last_seq());
    EXPECT_EQ(list[2].event, "snapshot");
    x.leave();
  }
}

TEST_F(TraceTest, ManyMayWatchButNotAnyNumber) {
  for (int i = 0; i < TraceHub::kMostStreams; ++i) watch();
  turn();
  EXPECT_EQ(api.trace.streams(), TraceHub::kMostStreams);
  FakeExchange& more = watch();
  turn();
  EXPECT_EQ(more.status, 429);
  EXPECT_THAT(more.body, HasSubstr("16 streams"));
  EXPECT_EQ(more.headers.at(0).first, "Retry-After");
  exchanges[3]->leave();
  until([&] { return api.trace.streams() < TraceHub::kMostStreams; });
  FakeExchange& another = watch();
  turn();
  EXPECT_EQ(another.status, 200);
  work(R"({"prompt":"abc","max_tokens":5})");
  for (auto& x : exchanges) {
    if (x->gone() || x->status != 200) continue;
    EXPECT_EQ(all(*x).back().id, engine->log().last_seq());
  }
}

TEST_F(TraceTest, OneThatIsBehindLosesEventsAndIsToldHowMany) {
  auto slow = api.trace.open(*engine), fast = api.trace.open(*engine);
  const Engine::Moment moment = engine->moment();
  slow->begin(moment), fast->begin(moment);
  std::string text, news;
  std::size_t sent = 0;
  while (sent < 2 * TraceHub::kMostUnread) {
    work(R"({"prompt":"abcdefghijklmnopqrs","max_tokens":200,"n":8})");
    std::this_thread::sleep_for(2 * api.trace.interval);
    do {
      news.clear();
      ASSERT_TRUE(fast->news(news, 64 << 10));
      EXPECT_LT(news.size(), 128u << 10);
      sent += news.size();
    } while (!news.empty());
  }
  EXPECT_EQ(fast->told(), engine->log().last_seq());
  EXPECT_FALSE(slow->news(text, SIZE_MAX));
  EXPECT_TRUE(text.empty());
  const std::uint64_t told_before = slow->told();
  EXPECT_EQ(told_before, moment.seq);
  slow->begin(engine->moment());
  EXPECT_EQ(slow->told(), engine->log().last_seq());
  work(R"({"prompt":"abc","max_tokens":3})");
  std::this_thread::sleep_for(2 * api.trace.interval);
  ASSERT_TRUE(slow->news(text, SIZE_MAX));
  EXPECT_EQ(told(text).front().id, slow->told() - told(text).size() + 1);
  // The stream's own words for it: gap, then a snapshot.
  FakeExchange& x = watch();
  turn();
  while (engine->log().last_seq() < slow->told() + 20000) {
    Request request;
    request.prompt = {5, 6, 7}, request.max_tokens = 200, request.ignore_eos = true;
    ASSERT_TRUE(engine->submit(request).ok());
    while (engine->step()) continue;
  }
  all(x);
  std::uint64_t seq = 0, gaps = 0;
  for (const Told& one : told(x.body)) {
    if (one.event == "gap") {
      ++gaps;
      EXPECT_EQ(one.data.at("from").to_number<std::uint64_t>(), seq);
      seq = one.data.at("to").to_number<std::uint64_t>();
    } else if (one.event == "snapshot") {
      EXPECT_TRUE(seq == 0 || one.id == seq);
      seq = one.id;
    } else if (one.id > 0) {
      ASSERT_EQ(one.id, ++seq);
    }
  }
  EXPECT_EQ(seq, engine->log().last_seq());
  EXPECT_EQ(gaps, 1u);
}

TEST_F(TraceTest, TellsWhenAnAnswerIsOut) {
  FakeExchange& x = watch();
  FakeExchange request(io, R"({"prompt":["abc","abd"],"max_tokens":3,"n":2})");
  const auto written = std::make_shared<Written>();
  written->first_ns = 5, written->last_ns = 9, written->bytes = 1234;
  request.mutable_request().written = written;
  const int before = open;
  begin(request, "/v1/completions");
  while (turn(), open > before) engine->step();
  const auto list = all(x);
  int found = 0;
  for (const Told& one : list) {
    if (one.event != "written") continue;
    ++found;
    EXPECT_EQ(one.data.at("req"), 1);
    EXPECT_EQ(one.data.at("first_write_ns"), 5);
    EXPECT_EQ(one.data.at("last_write_ns"), 9);
    EXPECT_EQ(one.data.at("bytes_out"), 1234);
    EXPECT_GT(one.data.at("at_ns").as_int64(), 0);
  }
  EXPECT_EQ(found, 1) << "one for a request, whatever its choices";
  EXPECT_EQ(list.back().event, "written");
}

TEST_F(TraceTest, EndsWithItsClientAndWithTheServer) {
  FakeExchange &gone = watch(), &stays = watch();
  turn();
  EXPECT_EQ(api.trace.streams(), 2);
  gone.leave();
  until([&] { return api.trace.streams() == 1; });
  api.draining = true;
  until([&] { return open == 0; });
  EXPECT_TRUE(stays.ended);
  EXPECT_FALSE(gone.ended);
}

TEST_F(TraceTest, IsForOperatorsAndRefusesWhatMakesNoSense) {
  FakeExchange& plain = watch("", false);
  turn();
  EXPECT_EQ(plain.status, 403);
  EXPECT_THAT(plain.body, HasSubstr("operator"));
  for (const char* query : {"from=-1", "from=", "from=1x", "from", "from=99999999999999999999", "=",
                            "to=1", "from=1&&", "from=1&x=2"}) {
    FakeExchange& x = watch(query);
    turn();
    EXPECT_EQ(x.status, 400) << query;
    EXPECT_LT(x.body.size(), 600u);
  }
  FakeExchange& x = watch(std::string(10000, 'x'));
  turn();
  EXPECT_LT(x.body.size(), 600u);
  EXPECT_EQ(api.trace.streams(), 0);
}

TEST_F(TraceTest, ThereIsNoneWithoutALog) {
  EngineOptions options = engine->options();
  options.trace_mib = 0;
  auto made = Engine::create(test::tiny_model(), options);
  ASSERT_TRUE(made.ok());
  Engine* before = std::exchange(api.engine, made->get());
  FakeExchange& x = watch();
  turn();
  EXPECT_EQ(x.status, 404);
  EXPECT_THAT(x.body, HasSubstr("--trace-mib"));
  FakeExchange full(io, "");
  full.mutable_request().query = "full=1";
  begin(full, "/api/snapshot");
  turn();
  EXPECT_THAT(full.body, Not(HasSubstr("\"seq\"")));
  EXPECT_THAT(full.body, HasSubstr("\"holders\""));
  api.engine = before;
}

TEST_F(TraceTest, AFullSnapshotHasEveryPageAndIsForOperators) {
  FakeExchange running(io, R"({"prompt":"abcdefghijklmnopqrstuvwxyz","max_tokens":20,"n":4})");
  begin(running, "/v1/completions");
  for (int i = 0; i < 4; ++i) turn(), engine->step();
  auto ask = [&](const std::string& query, bool all) {
    FakeExchange x(io, "");
    x.mutable_request().query = query;
    x.mutable_request().rights.is_operator = all;
    begin(x, "/api/snapshot");
    turn();
    return std::pair{x.status, x.body};
  };
  const json::value now = json::parse(ask("full=1", true).second);
  EXPECT_EQ(now.at("seq").to_number<std::uint64_t>(), engine->log().last_seq());
  EXPECT_EQ(now.at("epoch"), json::value(engine->epoch()));
  EXPECT_GT(now.at("now_ns").as_int64(), 0);
  ASSERT_EQ(now.at("running").as_array().size(), 4u);
  const json::value& group = now.at("pages").at("groups").at(0);
  const std::string states(group.at("pages").as_string());
  std::map<std::int64_t, std::int64_t> holders;
  for (const json::value& table : now.at("pages").at("tables").as_array())
    for (const json::value& page : table.at("pages").as_array()) ++holders[page.as_int64()];
  for (std::size_t i = 0; i < states.size(); ++i) {
    EXPECT_EQ(group.at("holders").at(i).as_int64(), holders[static_cast<std::int64_t>(i)]);
    EXPECT_EQ(group.at("fill").at(i).as_int64() > 0, states[i] != '.') << i;
  }
  for (const json::value& one : now.at("running").as_array()) {
    EXPECT_GE(one.at("slot").as_int64(), 0);
    EXPECT_EQ(one.at("prefill_end").as_int64(), 27);
  }
  for (const auto& [query, all] : {std::pair{"full=1", false}, {"full=0", true}, {"", true}}) {
    const auto [status, body] = ask(query, all);
    EXPECT_EQ(status, 200);
    EXPECT_THAT(body, Not(HasSubstr("\"seq\"")));
    EXPECT_THAT(body, Not(HasSubstr("\"holders\"")));
  }
  for (const char* query : {"full=2", "full=", "full=true", "x", "full=1&full", "full=-1"})
    EXPECT_EQ(ask(query, true).first, 400) << query;
  finish();
}

}  // namespace
}  // namespace vitrine
