// Clients that leave or read slowly, and servers that drain or stop, while events are streamed.
#include <gtest/gtest.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <random>

#include "server/http/test_events.h"

namespace vitrine {
namespace {

using namespace std::chrono_literals;
using namespace http_testing;

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
    way % 3 == 0 ? client.reset() : client.finish();
    EXPECT_TRUE(eventually([&] { return desk_.running == 0; })) << way;
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

// The slow reader takes nothing until the others have all been answered: were they to wait for it,
// they would wait for ever.
TEST_F(EventsTest, SlowReadersGetEverythingAndHinderNobody) {
  auto patient = options();
  patient.io_threads = 1;
  patient.write_timeout = 1h;
  RunningServer server(patient, routes());
  Client slow(server.port(), 4096);
  slow.send(get("/flood?100"));
  EXPECT_TRUE(eventually([&] { return desk_.running == 1; }));
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(ask(server.port(), get("/flood?1")).body.size(), 10'000u) << i;
  EXPECT_TRUE(eventually([&] { return desk_.running == 1; }));  // the slow one's
  auto answer = slow.response();
  EXPECT_EQ(answer.body.size(), 1'000'000u);
  EXPECT_TRUE(answer.complete);
}

TEST_F(EventsTest, AReaderThatTakesNothingIsDropped) {
  RunningServer server(options(), routes());
  Client client(server.port(), 4096);
  auto start = std::chrono::steady_clock::now();
  client.send(get("/flood?100"));
  EXPECT_TRUE(eventually([&] { return desk_.gone == 1; }));
  // Not before its time.
  EXPECT_GE(std::chrono::steady_clock::now() - start, options().write_timeout);
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
  server->stop();
  server.join();
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
    server->stop();
    server.join();
  }
  EXPECT_EQ(desk_.running, 0);
}

}  // namespace
}  // namespace vitrine
