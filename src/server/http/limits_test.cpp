// The transport's limits over real sockets: sizes, times, connections, descriptors.
#include <sys/resource.h>

#include <atomic>

#include "server/http/address_seats.h"
#include "server/http/test_routes.h"

namespace vitrine {
namespace {

using namespace std::chrono_literals;
using namespace http_testing;
using ::testing::HasSubstr;

TEST_F(HttpTest, BodyLimitAtItsEdge) {
  auto small = options();
  small.max_body_bytes = 1000;
  RunningServer server(small, routes());
  auto chunked = [&](std::size_t bytes) {
    return fmt::format(
        "POST /size HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        "{:x}\r\n{}\r\n0\r\n\r\n",
        bytes, std::string(bytes, 'x'));
  };
  for (std::size_t size : {0u, 999u, 1000u})
    EXPECT_EQ(ask(server.port(), post("/size", std::string(size, 'x'))).body, std::to_string(size));
  for (std::size_t size : {999u, 1000u})
    EXPECT_EQ(ask(server.port(), chunked(size)).body, std::to_string(size));
  auto by_length = ask(server.port(), post("/size", std::string(1001, 'x')));
  expect_error(by_length, 413);
  EXPECT_EQ(by_length.header("connection"), "close");
  expect_error(ask(server.port(), chunked(1001)), 413);
  // Before a byte of it is sent.
  expect_error(ask(server.port(),
                   "POST /size HTTP/1.1\r\nHost: localhost\r\n"
                   "Content-Length: 999999999999\r\n\r\n"),
               413);
  // The answer arrives although the client goes on sending.
  expect_error(ask(server.port(), post("/size", std::string(3 << 20, 'x'))), 413);
}

TEST_F(HttpTest, HeadLimitsAtTheirEdge) {
  auto small = options();
  small.max_header_bytes = 4000;
  small.max_headers = 10;
  RunningServer server(small, routes());
  auto padded = [](std::size_t total) {
    auto base = get("/hello", "X: \r\n").size();
    return get("/hello", "X: " + std::string(total - base, 'x') + "\r\n");
  };
  auto counted = [](int headers) {
    std::string more;
    for (int i = 1; i < headers; ++i) more += fmt::format("X-{}: 1\r\n", i);
    return get("/hello", more);
  };
  EXPECT_EQ(ask(server.port(), padded(3999)).status, 200);
  EXPECT_EQ(ask(server.port(), padded(4000)).status, 200);
  expect_error(ask(server.port(), padded(4001)), 431);
  EXPECT_EQ(ask(server.port(), counted(9)).status, 200);
  EXPECT_EQ(ask(server.port(), counted(10)).status, 200);
  expect_error(ask(server.port(), counted(11)), 431);
  expect_error(ask(server.port(), get("/" + std::string(1 << 20, 'a'))), 414);
}

TEST_F(HttpTest, AllBodiesTogetherAreBounded) {
  auto small = options();
  small.max_body_bytes = 1 << 20;
  small.max_bodies_bytes = 1 << 20;
  RunningServer server(small, routes());
  Client holder(server.port());
  auto request = post("/size", std::string(800'000, 'x'));
  holder.send(std::string_view(request).substr(0, request.size() - 1));
  EXPECT_TRUE(eventually([&] { return server->counts().body_bytes == 799'999; }));
  auto second = ask(server.port(), request);
  expect_error(second, 503);
  EXPECT_EQ(second.header("retry-after"), "1");
  holder.send("x");
  EXPECT_EQ(holder.response().body, "800000");
  EXPECT_TRUE(eventually([&] { return server->counts().body_bytes == 0; }));
  EXPECT_EQ(ask(server.port(), request).body, "800000");
}

TEST_F(HttpTest, SlowClientsAreGivenUp) {
  auto fast = options();
  fast.header_timeout = fast.body_timeout = fast.idle_timeout = 1s;
  RunningServer server(fast, routes());
  Client idle(server.port()), slow_head(server.port()), slow_body(server.port()),
      used(server.port());
  used.send(get("/hello"));
  EXPECT_EQ(used.response().status, 200);
  slow_body.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
  slow_head.send("GET /hello HT");
  // Bytes that come slowly do not help a head, whose time is counted from its first.
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(200ms);
    slow_head.send("T");
  }
  auto head = slow_head.response();
  EXPECT_TRUE(head.status == 408 || head.status == 400);
  expect_error(slow_body.response(), 408);
  EXPECT_TRUE(slow_body.ends());
  EXPECT_TRUE(idle.ends());
  EXPECT_EQ(idle.rest(), "");
  EXPECT_TRUE(used.ends());
  EXPECT_EQ(used.rest(), "");
}

TEST_F(HttpTest, ABodyHasALeastRate) {
  auto fast = options();
  fast.body_timeout = 1s;
  fast.min_body_rate = 1 << 20;
  RunningServer server(fast, routes());
  Client slow(server.port());
  slow.send("POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n");
  // Never a second without a byte, and never done.
  std::string answer;
  for (int i = 0; i < 300 && answer.empty(); ++i) {
    slow.send("x");
    answer = slow.receive(12, 100ms);
  }
  EXPECT_EQ(answer, "HTTP/1.1 408");
  // One that keeps the rate has the time that its bytes take.
  Client steady(server.port());
  steady.send("POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n");
  for (int i = 0; i < 15; ++i) {
    steady.send(std::string(200'000, 'x'));
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_EQ(steady.response().body, "3000000");
}

TEST_F(HttpTest, SlowHeadGets408) {
  auto fast = options();
  fast.header_timeout = 1s;
  RunningServer server(fast, routes());
  Client client(server.port());
  client.send("GET /hello HTTP/1.1\r\nHost: local");
  expect_error(client.response(), 408);
  EXPECT_TRUE(client.ends());
}

TEST_F(HttpTest, TooManyConnections) {
  auto few = options();
  few.max_connections = 3;
  RunningServer server(few, routes());
  {
    std::vector<Client> held;
    for (int i = 0; i < 3; ++i) {
      held.emplace_back(server.port());
      held.back().send(get("/hello"));
      EXPECT_EQ(held.back().response().status, 200);
    }
    for (int i = 0; i < 5; ++i) {
      auto over = ask(server.port(), get("/hello"));
      expect_error(over, 503);
      EXPECT_EQ(over.header("retry-after"), "1");
      EXPECT_EQ(over.header("connection"), "close");
    }
    held[0].send(get("/hello"));
    EXPECT_EQ(held[0].response().status, 200);
    EXPECT_EQ(server->counts().connections, 3);
    EXPECT_EQ(server->counts().refused, 5u);
  }
  EXPECT_TRUE(eventually([&] { return server->counts().connections == 0; }));
  EXPECT_EQ(ask(server.port(), get("/hello")).status, 200);
}

TEST_F(HttpTest, ConnectionsOfAnAddressAreBounded) {
  auto few = options();
  few.host = "0.0.0.0";
  few.max_connections = 10;
  few.max_connections_per_address = 2;
  RunningServer server(few, routes());
  {
    std::vector<Client> held;
    for (int i = 0; i < 2; ++i) {
      held.emplace_back(server.port());
      held.back().send(get("/hello"));
      EXPECT_EQ(held.back().response().status, 200);
    }
    auto over = ask(server.port(), get("/hello"));
    expect_error(over, 503);
    EXPECT_EQ(over.header("retry-after"), "1");
    EXPECT_EQ(server->counts().connections, 2);
    EXPECT_EQ(server->counts().refused, 1u);
    EXPECT_EQ(server->counts().refused_by_address, 1u);
  }
  EXPECT_TRUE(eventually([&] { return server->counts().connections == 0; }));
  EXPECT_EQ(ask(server.port(), get("/hello")).status, 200);
}

TEST(AddressSeats, AnIpv6NetworkIsOneClient) {
  AddressSeats seats;
  auto take = [&](const char* address) { return seats.take(asio::ip::make_address(address), 1); };
  {
    auto v4 = take("10.0.0.1"), v6 = take("2001:db8:1:2::1");
    EXPECT_TRUE(v4 && v6);
    EXPECT_FALSE(take("10.0.0.1"));
    EXPECT_FALSE(take("::ffff:10.0.0.1"));
    EXPECT_FALSE(take("2001:db8:1:2:ffff::9"));
    EXPECT_TRUE(take("10.0.0.2"));
    EXPECT_TRUE(take("2001:db8:1:3::1"));
    auto moved = std::move(v4);
    EXPECT_FALSE(take("10.0.0.1"));
  }
  EXPECT_TRUE(take("10.0.0.1"));
  EXPECT_TRUE(take("2001:db8:1:2::1"));
}

// No error shows more than 200 bytes of what came.
TEST_F(HttpTest, ErrorsShowLittleOfAHead) {
  RunningServer server(options(), routes());
  const std::string x(3000, 'Q');
  for (const std::string& request :
       {get("/" + x), get("/items/exact?" + x), x + " /hello HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /hello " + x + "\r\nHost: localhost\r\n\r\n",
        "DELETE /hello" + x + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /hello HTTP/1.1\r\nHost: " + x + "\r\n\r\n",
        get("/hello", "Origin: http://" + x + "\r\n"), get("/hello", "Expect: " + x + "\r\n"),
        get("/hello", "Content-Length: " + x + "\r\n"),
        get("/hello", "Transfer-Encoding: " + x + "\r\n"), get("/hello", x + " \r\n"),
        get("/hello", "x-request-id: " + x + "\r\n"),
        get("/hello", "Authorization: Bearer " + x + "\r\n")}) {
    Client client(server.port());
    client.send(request);
    EXPECT_TRUE(client.receive_until("\r\n\r\n"));
    client.finish();
    EXPECT_TRUE(client.ends());
    EXPECT_LE(std::count(client.rest().begin(), client.rest().end(), 'Q'), 200) << request;
  }
}

TEST_F(HttpTest, OutOfDescriptorsIsSurvived) {
  RunningServer server(options(), routes());
  EXPECT_EQ(ask(server.port(), get("/hello")).status, 200);
  EXPECT_TRUE(eventually([&] { return server->counts().connections == 0; }));
  ::testing::internal::CaptureStderr();
  rlimit saved;
  ::getrlimit(RLIMIT_NOFILE, &saved);
  Client waiting(server.port());  // may be accepted before the limit falls
  Client second(server.port());
  EXPECT_TRUE(eventually([&] { return server->counts().connections == 2; }));
  {
    int probe = ::dup(0);
    ::close(probe);
    rlimit tight = saved;
    tight.rlim_cur = static_cast<rlim_t>(probe) + 1;
    ::setrlimit(RLIMIT_NOFILE, &tight);
    Client third(server.port());  // takes the last descriptor; accept() finds none
    EXPECT_TRUE(third.connected());
    std::this_thread::sleep_for(250ms);
    EXPECT_EQ(server->counts().connections, 2);
    waiting.send(get("/hello"));
    EXPECT_EQ(waiting.response().status, 200);
    ::setrlimit(RLIMIT_NOFILE, &saved);
    third.send(get("/hello"));
    EXPECT_EQ(third.response().status, 200);
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("cannot accept"));
}

}  // namespace
}  // namespace vitrine
