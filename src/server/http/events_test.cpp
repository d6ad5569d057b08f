// Streams of events: frames, many streams at once, wake-ups from other threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "server/http/test_events.h"

namespace vitrine {
namespace {

using namespace std::chrono_literals;
using namespace http_testing;

TEST_F(EventsTest, HeadAndFrames) {
  RunningServer server(options(), routes());
  Client client(server.port());
  client.send(get("/produce?3"));
  auto first = job(0);
  // Frames arrive one by one, not when all are there.
  first->produced = 1;
  first->wake();
  EXPECT_TRUE(client.receive_until("data: 0\n\n"));
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
    auto answer = client.response();
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
  std::thread reader([&] { EXPECT_EQ(client.response().body, expected(kRounds)); });
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
