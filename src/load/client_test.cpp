// The client against a small server of our own that sends canned bytes: the test is
// how the client reads them.
#include "load/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio.hpp>
#include <mutex>
#include <thread>

#include "load/stats.h"

namespace vitrine::load {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using testing::HasSubstr;

std::string chunk(const std::string& data) {
  return fmt::format("{:x}\r\n{}\r\n", data.size(), data);
}

// A whole streamed answer of `tokens` tokens.
std::string answer(int tokens) {
  std::string out =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < tokens; ++i)
    out += chunk("data: {\"choices\":[{\"text\":\"x\",\"finish_reason\":null}]}\n\n");
  out += chunk("data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n");
  out += chunk(fmt::format(
      "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":5,\"completion_tokens\":{}}}}}\n\n",
      tokens));
  return out + chunk("data: [DONE]\n\n") + "0\r\n\r\n";
}

std::string plain(int status, const std::string& body) {
  return fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\n\r\n{}", status, body.size(), body);
}

// Answers each request with what `reply` makes of its body; an empty reply closes the connection
// without an answer. `close`: closes after every reply.
class CannedServer {
 public:
  using Reply = std::function<std::string(const std::string& head, const std::string& body)>;
  explicit CannedServer(Reply reply, bool close = false) : reply_(std::move(reply)), close_(close) {
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~CannedServer() {
    io_.stop();
    thread_.join();
  }
  Target target() const { return {"127.0.0.1", acceptor_.local_endpoint().port(), "", ""}; }
  int connections() const { return connections_; }

 private:
  struct Session {
    explicit Session(tcp::socket s) : socket(std::move(s)) {}
    tcp::socket socket;
    asio::streambuf in;
    std::string out;
  };

  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, tcp::socket socket) {
      if (error) return;
      ++connections_;
      read(std::make_shared<Session>(std::move(socket)));
      accept();
    });
  }

  void read(std::shared_ptr<Session> s) {
    asio::async_read_until(s->socket, s->in, "\r\n\r\n",
                           [this, s](boost::system::error_code error, std::size_t size) {
                             if (error) return;
                             std::string head(asio::buffers_begin(s->in.data()),
                                              asio::buffers_begin(s->in.data()) + long(size));
                             s->in.consume(size);
                             read_body(s, head);
                           });
  }

  void read_body(std::shared_ptr<Session> s, const std::string& head) {
    std::size_t at = head.find("Content-Length: ");
    std::size_t length = at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
    std::size_t missing = length > s->in.size() ? length - s->in.size() : 0;
    asio::async_read(s->socket, s->in, asio::transfer_exactly(missing),
                     [this, s, head, length](boost::system::error_code error, std::size_t) {
                       if (error) return;
                       std::string body(asio::buffers_begin(s->in.data()),
                                        asio::buffers_begin(s->in.data()) + long(length));
                       s->in.consume(length);
                       write(s, reply_(head, body));
                     });
  }

  void write(std::shared_ptr<Session> s, std::string out) {
    if (out.empty()) return;  // the session's end closes the socket
    s->out = std::move(out);
    asio::async_write(s->socket, asio::buffer(s->out),
                      [this, s](boost::system::error_code error, std::size_t) {
                        if (!error && !close_) read(s);
                      });
  }

  Reply reply_;
  bool close_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

int asked_tokens(const std::string& body) {
  return static_cast<int>(json::parse(body).at("max_tokens").as_int64());
}

LoadSpec small_load() {
  LoadSpec spec;
  spec.requests = 40;
  spec.concurrency = 4;
  spec.vocab = 100;
  spec.prompt.mean = 5;
  spec.output = {6, 1, 0};
  spec.timeout_s = 5;
  return spec;
}

TEST(Client, ClosedLoopOnFourConnections) {
  std::mutex mutex;
  std::vector<std::string> bodies;
  CannedServer server([&](const std::string& head, const std::string& body) {
    EXPECT_THAT(head, HasSubstr("POST /v1/completions HTTP/1.1\r\n"));
    EXPECT_THAT(head, HasSubstr("Authorization: Bearer secret\r\n"));
    std::lock_guard lock(mutex);
    bodies.push_back(body);
    return answer(asked_tokens(body));
  });
  Target target = server.target();
  target.api_key = "secret";
  LoadSpec spec = small_load();
  spec.warmup = 3;
  auto trace = run_load(target, spec);
  ASSERT_TRUE(trace.ok());
  Summary s = summarize(*trace, {});
  EXPECT_EQ(s.ok, 40);
  EXPECT_EQ(s.failed + s.rejected + s.short_answers, 0) << s.first_error;
  EXPECT_EQ(server.connections(), 4);
  std::int64_t tokens = 0;
  std::vector<std::string> expected;
  for (int i = -3; i < 40; ++i) {
    PlannedRequest planned = plan_request(spec, i);
    expected.push_back(request_body(planned, ""));
    if (i >= 0) tokens += planned.output_tokens;
  }
  EXPECT_EQ(s.output_tokens, tokens);
  EXPECT_THAT(bodies, testing::UnorderedElementsAreArray(expected));
}

TEST(Client, OpenLoopKeepsToItsArrivals) {
  CannedServer server(
      [](const std::string&, const std::string& body) { return answer(asked_tokens(body)); });
  LoadSpec spec = small_load();
  spec.rate = 400;
  auto trace = run_load(server.target(), spec);
  ASSERT_TRUE(trace.ok());
  std::vector<double> scheduled, expected;
  double at = 0;
  for (int i = 0; i < 40; ++i) expected.push_back(at += plan_request(spec, i).gap_s);
  for (const RequestTrace& r : trace->requests) {
    scheduled.push_back(r.scheduled);
    EXPECT_EQ(r.outcome, Outcome::kOk) << r.error;
    EXPECT_GE(r.sent, r.scheduled);
    EXPECT_GE(r.first, r.sent);
    EXPECT_GE(r.end, r.last);
  }
  std::sort(scheduled.begin(), scheduled.end());
  EXPECT_THAT(scheduled, testing::Pointwise(testing::DoubleNear(1e-9), expected));
}

TEST(Client, OpenLoopCountsTheWaitForAConnection) {
  CannedServer server([](const std::string&, const std::string& body) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return answer(asked_tokens(body));
  });
  LoadSpec spec = small_load();
  spec.rate = 1000;
  spec.requests = 20;
  spec.max_connections = 1;
  auto trace = run_load(server.target(), spec);
  ASSERT_TRUE(trace.ok());
  Summary s = summarize(*trace, {});
  EXPECT_EQ(s.ok, 20);
  EXPECT_EQ(server.connections(), 1);
  // The last of 20 that arrived within some 20 ms is served after 200.
  EXPECT_GT(s.ttft_ms.p99, 120);
}

TEST(Client, DurationEndsTheLoad) {
  CannedServer server(
      [](const std::string&, const std::string& body) { return answer(asked_tokens(body)); });
  for (double rate : {0.0, 300.0}) {
    LoadSpec spec = small_load();
    spec.rate = rate;
    spec.requests = 0;
    spec.duration_s = 0.2;
    auto trace = run_load(server.target(), spec);
    ASSERT_TRUE(trace.ok());
    EXPECT_GT(trace->requests.size(), 10);
    for (const RequestTrace& r : trace->requests) EXPECT_LT(r.scheduled, 0.2);
  }
}

struct Bad {
  const char* name;
  std::string reply;
  Outcome outcome;
};

TEST(Client, WhatAServerMayDoWrongIsCounted) {
  std::string whole = answer(3);
  std::string error_frame = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
                            chunk("data: {\"error\":{\"message\":\"no\"}}\n\n") + "0\r\n\r\n";
  for (const Bad& bad :
       {Bad{"429", plain(429, "{}"), Outcome::kRejected},
        Bad{"400", plain(400, "{}"), Outcome::kHttpError},
        Bad{"JSON where a stream was asked for", plain(200, "{}"), Outcome::kBroken},
        Bad{"error frame", error_frame, Outcome::kStreamError},
        Bad{"half a stream", whole.substr(0, whole.size() / 2), Outcome::kBroken},
        Bad{"half a head", "HTTP/1.1 200 O", Outcome::kBroken},
        Bad{"not HTTP", "hello\r\n\r\n", Outcome::kBroken}, Bad{"nothing", "", Outcome::kBroken}}) {
    CannedServer server([&](const std::string&, const std::string&) { return bad.reply; }, true);
    LoadSpec spec = small_load();
    spec.requests = 8;
    auto trace = run_load(server.target(), spec);
    ASSERT_TRUE(trace.ok());
    EXPECT_EQ(trace->requests.size(), 8) << bad.name;
    for (const RequestTrace& r : trace->requests)
      EXPECT_EQ(outcome_name(r.outcome), std::string(outcome_name(bad.outcome))) << bad.name;
  }
}

TEST(Client, AnIdleConnectionTheServerClosedIsOpenedAgain) {
  // Announces nothing and closes after each answer.
  CannedServer server(
      [](const std::string&, const std::string& body) { return answer(asked_tokens(body)); }, true);
  auto trace = run_load(server.target(), small_load());
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(summarize(*trace, {}).ok, 40);
}

TEST(Client, ASilentServerTimesOut) {
  asio::io_context io;
  tcp::acceptor silent(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  LoadSpec spec = small_load();
  spec.requests = 4;
  spec.timeout_s = 0.1;
  auto trace = run_load({"127.0.0.1", silent.local_endpoint().port(), "", ""}, spec);
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(summarize(*trace, {}).outcomes["timeout"], 4);
}

TEST(Client, AServerThatIsGoneIsCounted) {
  int port = 0;
  {
    asio::io_context io;
    tcp::acceptor gone(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    port = gone.local_endpoint().port();
  }
  LoadSpec spec = small_load();
  spec.requests = 12;
  auto trace = run_load({"127.0.0.1", port, "", ""}, spec);
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(summarize(*trace, {}).outcomes["connect"], 12);
  EXPECT_FALSE(ask_info({"127.0.0.1", port, "", ""}).ok());
}

TEST(Client, AThousandStreamsAtOnce) {
  CannedServer server(
      [](const std::string&, const std::string& body) { return answer(asked_tokens(body)); });
  LoadSpec spec = small_load();
  spec.requests = 2000;
  spec.concurrency = 1000;
  auto trace = run_load(server.target(), spec);
  ASSERT_TRUE(trace.ok());
  Summary s = summarize(*trace, {});
  EXPECT_EQ(s.ok, 2000) << s.first_error;
}

TEST(Client, AsksTheServerAboutItself) {
  CannedServer server([](const std::string& head, const std::string&) {
    EXPECT_THAT(head, HasSubstr("GET /api/info HTTP/1.1\r\n"));
    return plain(200, "{\"model\":{\"vocab\":321,\"name\":\"m\"}}");
  });
  auto info = ask_info(server.target());
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->vocab, 321);
  EXPECT_EQ(info->model, "m");
  CannedServer odd([](const std::string&, const std::string&) { return plain(200, "[1"); });
  EXPECT_FALSE(ask_info(odd.target()).ok());
  CannedServer no([](const std::string&, const std::string&) { return plain(401, "key"); });
  EXPECT_THAT(ask_info(no.target()).error().message, HasSubstr("401"));
}

TEST(Client, Urls) {
  for (auto [url, host, port] : {std::tuple{"http://127.0.0.1:8080", "127.0.0.1", 8080},
                                 {"http://localhost/", "localhost", 80},
                                 {"http://[::1]:99", "::1", 99},
                                 {"http://[::1]", "::1", 80}}) {
    auto target = parse_url(url);
    ASSERT_TRUE(target.ok()) << url;
    EXPECT_EQ(target->host, host);
    EXPECT_EQ(target->port, port);
  }
  for (const char* url : {"", "localhost", "https://a", "http://", "http://a:0", "http://a:x",
                          "http://a:70000", "http://a/b", "http://u@a", "http://[::1", "http://[]"})
    EXPECT_FALSE(parse_url(url).ok()) << url;
}

}  // namespace
}  // namespace vitrine::load
