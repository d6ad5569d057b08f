// Streams of events: many at once, woken from other threads, slow readers, clients that go away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fstream>
#include <map>
#include <mutex>
#include <random>

#include "server/http.h"
#include "server/http_test_client.h"

namespace vitrine {
namespace {

using namespace std::chrono_literals;

// An engine in miniature: handlers register, a test's threads produce and wake.
struct Job {
  std::atomic<int> produced{0};
  std::function<void()> wake;
};

class Desk {
 public:
  void enter(std::shared_ptr<Job> job) {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  std::vector<std::shared_ptr<Job>> jobs() {
    std::lock_guard lock(mutex_);
    return jobs_;
  }
  std::atomic<int> running{0}, gone{0};

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Job>> jobs_;
};

struct Present {
  explicit Present(Desk& desk) : desk_(desk) { ++desk_.running; }
  ~Present() { --desk_.running; }
  Desk& desk_;
};

// Sends what the job produces until there are query (a number) frames.
asio::awaitable<void> produce(Desk& desk, Exchange& exchange) {
  Present present(desk);
  auto job = std::make_shared<Job>();
  job->wake = exchange.waker();
  const int wanted = std::stoi(exchange.request().query);
  desk.enter(job);
  co_await exchange.begin_events();
  int sent = 0;
  while (sent < wanted) {
    bool here = co_await exchange.wait();
    if (!here) break;
    std::string frames;
    for (int ready = job->produced; sent < ready; ++sent)
      frames += fmt::format("data: {}\n\n", sent);
    bool taken = co_await exchange.send(std::move(frames));
    if (!taken) break;
  }
  if (sent < wanted) {
    ++desk.gone;
    EXPECT_TRUE(exchange.gone());
    co_return;
  }
  co_await exchange.send("data: [DONE]\n\n");
  co_await exchange.end_events();
}

// As many frames of 10 kB as the query says, as fast as the client takes them.
asio::awaitable<void> flood(Desk& desk, Exchange& exchange) {
  Present present(desk);
  co_await exchange.begin_events();
  const int frames = std::stoi(exchange.request().query);
  for (int i = 0; i < frames; ++i) {
    std::string frame = "data: " + std::string(9'992, static_cast<char>('a' + i % 26)) + "\n\n";
    bool taken = co_await exchange.send(std::move(frame));
    if (!taken) {
      ++desk.gone;
      co_return;
    }
  }
  co_await exchange.end_events();
}

// Waits without sending, then answers at once.
asio::awaitable<void> wait_first(Desk& desk, Exchange& exchange) {
  Present present(desk);
  auto job = std::make_shared<Job>();
  job->wake = exchange.waker();
  desk.enter(job);
  bool here = co_await exchange.wait();
  if (!here) {
    ++desk.gone;
    co_return;
  }
  co_await exchange.reply(200, "text/plain", "woken " + exchange.request().query);
}

std::string expected(int frames) {
  std::string out;
  for (int i = 0; i < frames; ++i) out += fmt::format("data: {}\n\n", i);
  return out + "data: [DONE]\n\n";
}

class EventsTest : public ::testing::Test {
 protected:
  EventsTest() { set_log_level(LogLevel::kError); }
  ~EventsTest() override { set_log_level(LogLevel::kInfo); }

  std::vector<Route> routes() {
    return {{"GET", "/produce", [this](Exchange& e) { return produce(desk_, e); }, false},
            {"GET", "/flood", [this](Exchange& e) { return flood(desk_, e); }, false},
            {"GET", "/wait", [this](Exchange& e) { return wait_first(desk_, e); }, false}};
  }
  static HttpOptions options() {
    HttpOptions out;
    out.port = 0;
    out.io_threads = 2;
    out.write_timeout = 1s;
    return out;
  }
  std::shared_ptr<Job> job(std::size_t index) {
    EXPECT_TRUE(eventually([&] { return desk_.jobs().size() > index; }));
    return desk_.jobs().at(index);
  }

  Desk desk_;
};

TEST_F(EventsTest, HeadAndFrames) {
  RunningServer server(options(), routes());
  Client client(server.port());
  client.send(get("/produce?3"));
  auto first = job(0);
  // Frames arrive one by one, not when all are there.
  first->produced = 1;
  first->wake();
  EXPECT_TRUE(client.receive_until("data: 0\n\n", 2s));
  first->produced = 3;
  first->wake();
  auto answer = client.response();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(answer.header("cache-control"), "no-cache");
  EXPECT_EQ(answer.header("x-accel-buffering"), "no");
  EXPECT_EQ(answer.body, expected(3));
  EXPECT_TRUE(answer.complete);
  // The connection serves on.
  client.send(get("/produce?0"));
  EXPECT_EQ(client.response().body, expected(0));
}

TEST_F(EventsTest, Http10UntilCloseAndHead) {
  RunningServer server(options(), routes());
  Client old(server.port());
  old.send("GET /flood?3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  auto answer = old.response();
  EXPECT_EQ(answer.header("transfer-encoding"), "");
  EXPECT_EQ(answer.header("connection"), "close");
  EXPECT_EQ(answer.body.size(), 30'000u);
  Client head(server.port());
  head.send("HEAD /flood?3 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(head.response(true).header("transfer-encoding"), "chunked");
}

TEST_F(EventsTest, TwoHundredStreamsWokenByManyThreads) {
  constexpr int kStreams = 200, kFrames = 50, kThreads = 4;
  RunningServer server(options(), routes());
  std::vector<Client> clients;
  for (int i = 0; i < kStreams; ++i) {
    clients.emplace_back(server.port());
    clients.back().send(get(fmt::format("/produce?{}", kFrames)));
  }
  ASSERT_TRUE(eventually([&] { return desk_.jobs().size() == kStreams; }));
  auto jobs = desk_.jobs();
  std::atomic<int> left{kStreams * kFrames};
  std::vector<std::thread> engine;
  for (int t = 0; t < kThreads; ++t)
    engine.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      while (left > 0) {
        auto& some = *jobs[random() % jobs.size()];
        int before = some.produced.load();
        if (before < kFrames && some.produced.compare_exchange_strong(before, before + 1)) --left;
        some.wake();
      }
    });
  for (auto& client : clients) {
    auto answer = client.response(false, 20s);
    ASSERT_EQ(answer.body, expected(kFrames));
    ASSERT_TRUE(answer.complete);
  }
  for (auto& thread : engine) thread.join();
  EXPECT_EQ(desk_.gone, 0);
  EXPECT_TRUE(eventually([&] { return desk_.running == 0; }));
  // Late calls find nobody and harm nobody.
  for (auto& late : jobs) late->wake();
}

// One call for each piece of work, each after the last was answered: a lost wake-up would hang.
TEST_F(EventsTest, NoWakeUpIsLost) {
  constexpr int kRounds = 5000;
  RunningServer server(options(), routes());
  Client client(server.port());
  client.send(get(fmt::format("/produce?{}", kRounds)));
  auto only = job(0);
  std::thread reader([&] { EXPECT_EQ(client.response(false, 20s).body, expected(kRounds)); });
  for (int i = 1; i <= kRounds; ++i) {
    only->produced = i;
    only->wake();
    if (i % 7 == 0) std::this_thread::yield();
  }
  reader.join();
}

TEST_F(EventsTest, WakersOutliveExchangeAndServer) {
  std::function<void()> waker;
  {
    RunningServer server(options(), routes());
    Client client(server.port());
    client.send(get("/wait?1"));
    waker = job(0)->wake;
    waker();
    EXPECT_EQ(client.response().body, "woken 1");
    client.send(get("/wait?2"));
    auto second = job(1);
    // The first exchange's waker does not end the second's wait.
    for (int i = 0; i < 100; ++i) waker();
    EXPECT_EQ(client.receive(1, 50ms), "");
    second->wake();
    EXPECT_EQ(client.response().body, "woken 2");
  }
  waker();
}

// A call that arrives while the server stops must not make it listen for calls once more, for good.
TEST_F(EventsTest, WakersDoNotKeepAStoppingServer) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<bool> over = false;
    std::thread caller;
    {
      RunningServer server(options(), routes());
      Client client(server.port());
      client.send(get("/wait?1"));
      caller = std::thread([&over, wake = job(static_cast<std::size_t>(round))->wake] {
        while (!over) wake();
      });
      EXPECT_EQ(client.response().body, "woken 1");
    }
    over = true;
    caller.join();
  }
}

TEST_F(EventsTest, AClientThatLeavesIsNoticedWhileTheHandlerWaits) {
  RunningServer server(options(), routes());
  std::string ahead(100'000, 'x');
  for (int way = 0; way < 8; ++way) {
    Client client(server.port());
    client.send(get(way % 2 ? "/produce?3" : "/wait?0"));
    job(static_cast<std::size_t>(way));
    // Also when it has sent more ahead than is read (but no more than the system takes, or its end
    // could not arrive).
    if (way >= 4) client.send(post("/nothing", ahead));
    auto start = std::chrono::steady_clock::now();
    way % 3 == 0 ? client.reset() : client.finish();
    EXPECT_TRUE(eventually([&] { return desk_.running == 0; })) << way;
    EXPECT_LT(std::chrono::steady_clock::now() - start, 1s);
    EXPECT_EQ(desk_.gone, way + 1);
  }
  EXPECT_TRUE(eventually([&] { return server->counts().connections == 0; }));
}

TEST_F(EventsTest, WhatIsSentAheadIsKept) {
  RunningServer server(options(), routes());
  Client client(server.port());
  std::string all;
  for (int i = 0; i < 3000; ++i) all += get(fmt::format("/flood?{}", i % 2));
  client.send(get("/wait?first"));
  auto first = job(0);
  std::thread sender([&] { EXPECT_TRUE(client.send(all)); });
  std::this_thread::sleep_for(50ms);
  first->wake();
  EXPECT_EQ(client.response().body, "woken first");
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(client.response().body.size(), 10'000u * (i % 2)) << i;
  sender.join();
}

TEST_F(EventsTest, ClientsThatLeaveAtRandomLeaveNothingBehind) {
  RunningServer server(options(), routes());
  ask(server.port(), get("/produce?0"));
  EXPECT_TRUE(eventually([&] { return server->counts().connections == 0; }));
  int descriptors = open_descriptors();
  std::mt19937 random(11);
  std::atomic<bool> stop{false};
  std::thread engine([&] {
    while (!stop) {
      for (auto& some : desk_.jobs()) {
        ++some->produced;
        some->wake();
      }
      std::this_thread::sleep_for(1ms);
    }
  });
  for (int i = 0; i < 400; ++i) {
    Client client(server.port());
    std::string requests[] = {get("/produce?20"), get("/wait?1"), get("/flood?50"),
                              post("/produce?1", std::string(5000, 'x'))};
    std::string request = requests[random() % 4];
    bool whole = random() % 3 != 0;
    client.send(
        std::string_view(request).substr(0, whole ? request.size() : random() % request.size()));
    if (random() % 2)
      client.receive(random() % 20'000 + 1, std::chrono::milliseconds(random() % 10));
    switch (random() % 3) {
      case 0:
        client.reset();
        break;
      case 1:
        client.finish();
        break;
    }
  }
  EXPECT_TRUE(eventually([&] { return desk_.running == 0; }));
  stop = true;
  engine.join();
  EXPECT_TRUE(eventually([&] { return server->counts().connections == 0; }));
  EXPECT_TRUE(eventually([&] { return open_descriptors() == descriptors; }));
}

TEST_F(EventsTest, SlowReadersGetEverythingAndHinderNobody) {
  auto patient = options();
  patient.io_threads = 1;
  patient.write_timeout = 5s;
  RunningServer server(patient, routes());
  Client slow(server.port(), 4096);
  slow.send(get("/flood?100"));
  std::this_thread::sleep_for(100ms);
  for (int i = 0; i < 50; ++i) {
    auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(ask(server.port(), get("/flood?1")).body.size(), 10'000u);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 500ms);
  }
  EXPECT_TRUE(eventually([&] { return desk_.running == 1; }));  // the slow one's
  auto answer = slow.response(false, 10s);
  EXPECT_EQ(answer.body.size(), 1'000'000u);
  EXPECT_TRUE(answer.complete);
}

TEST_F(EventsTest, AReaderThatTakesNothingIsDropped) {
  RunningServer server(options(), routes());
  Client client(server.port(), 4096);
  client.send(get("/flood?100"));
  auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(eventually([&] { return desk_.gone == 1; }));
  auto taken = std::chrono::steady_clock::now() - start;
  EXPECT_GT(taken, 900ms);
  EXPECT_LT(taken, 3s);
  EXPECT_TRUE(eventually([&] { return server->counts().connections == 0; }));
  EXPECT_FALSE(client.response().complete);
}

TEST_F(EventsTest, DrainFinishesStreams) {
  RunningServer server(options(), routes());
  Client client(server.port());
  client.send(get("/produce?2"));
  auto only = job(0);
  server->stop_accepting();
  EXPECT_TRUE(eventually([&] { return !Client(server.port()).connected(); }));
  only->produced = 2;
  only->wake();
  EXPECT_EQ(client.response().body, expected(2));
  EXPECT_TRUE(client.ends());
  server.join();
}

TEST_F(EventsTest, StopEndsWaitingHandlers) {
  RunningServer server(options(), routes());
  std::vector<Client> clients;
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back(server.port(), 4096);
    clients.back().send(get(i % 2 ? "/flood?1000" : "/wait?1"));
  }
  EXPECT_TRUE(eventually([&] { return desk_.running == 20; }));
  auto start = std::chrono::steady_clock::now();
  server->stop();
  server.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
  EXPECT_EQ(desk_.running, 0);
  EXPECT_EQ(desk_.gone, 20);
}

asio::awaitable<void> sleep_on(Desk& desk, Exchange&) {
  Present present(desk);
  asio::steady_timer timer(co_await asio::this_coro::executor, 1h);
  co_await timer.async_wait(asio::use_awaitable);
}

TEST_F(EventsTest, StopLeavesHandlersThatDoNotEnd) {
  {
    RunningServer server(
        options(), {{"GET", "/sleep", [this](Exchange& e) { return sleep_on(desk_, e); }, false}});
    Client client(server.port());
    client.send(get("/sleep"));
    EXPECT_TRUE(eventually([&] { return desk_.running == 1; }));
    auto start = std::chrono::steady_clock::now();
    server->stop();
    server.join();
    EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  }
  EXPECT_EQ(desk_.running, 0);
}

std::size_t resident_bytes() {
  std::size_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(EventsTest, IdleStreamsAreSmall) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "memory is another under sanitizers";
#endif
  constexpr int kStreams = 400;
  RunningServer server(options(), routes());
  auto open = [&](int streams) {
    std::vector<Client> clients;
    std::size_t entered = desk_.jobs().size();
    for (int i = 0; i < streams; ++i) {
      clients.emplace_back(server.port());
      clients.back().send(get("/produce?1"));
    }
    EXPECT_TRUE(eventually([&] { return desk_.jobs().size() == entered + clients.size(); }));
    return clients;
  };
  auto warm = open(20);
  auto before = resident_bytes();
  auto clients = open(kStreams);
  auto after = resident_bytes();
  std::size_t each = after > before ? (after - before) / kStreams : 0;
  RecordProperty("bytes_per_stream", static_cast<int>(each));
  EXPECT_LE(each, 32u << 10);
}

}  // namespace
}  // namespace vitrine
