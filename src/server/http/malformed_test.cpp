// Requests that are wrong: each is refused at once, and the next client is served exactly.
#include <gtest/gtest.h>

#include <random>

#include "base/log.h"
#include "server/http/head.h"
#include "server/http/http.h"
#include "server/http/parser.h"
#include "server/http/test_client.h"

namespace vitrine {
namespace {

using namespace std::chrono_literals;

asio::awaitable<void> echo(Exchange& exchange) {
  std::string body = exchange.request().body;
  co_await exchange.reply(200, "text/plain", std::move(body));
}

struct Bad {
  std::string name, bytes;
  int status;
};

std::string line(std::string_view request_line) {
  return std::string(request_line) + "\r\nHost: localhost\r\n\r\n";
}

std::string field(std::string_view text) {
  return "POST /echo HTTP/1.1\r\nHost: localhost\r\n" + std::string(text) + "\r\n\r\n";
}

std::string chunked(std::string_view body) {
  return field("Transfer-Encoding: chunked") + std::string(body);
}

std::vector<Bad> corpus() {
  using namespace std::string_literals;
  return {
      // Request lines.
      {"no version", "GET /echo\r\n\r\n", 400},
      {"no version, no end", "GET /echo\r\n", 400},
      {"HTTP/1.32", line("POST /echo HTTP/1.32"), 400},
      {"HTTP/1.2", line("POST /echo HTTP/1.2"), 400},
      {"HTTP/0.9", line("POST /echo HTTP/0.9"), 400},
      {"HTTP/2.0", line("POST /echo HTTP/2.0"), 505},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"http/1.1", line("POST /echo http/1.1"), 400},
      {"HTTP/1.1 and more", line("POST /echo HTTP/1.1 x"), 400},
      {"two spaces", line("POST  /echo HTTP/1.1"), 400},
      {"leading space", line(" POST /echo HTTP/1.1"), 400},
      {"tab", line("POST\t/echo HTTP/1.1"), 400},
      {"space in target", line("POST /ec ho HTTP/1.1"), 400},
      {"method of odd characters", line("P(ST /echo HTTP/1.1"), 400},
      {"NUL in target", line("POST /ec\0ho HTTP/1.1"s), 400},
      {"high byte in target", line("POST /\xff HTTP/1.1"), 400},
      {"TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s, 400},
      {"binary", std::string(64, '\0'), 400},
      {"line of a megabyte", "GET /" + std::string(1 << 20, 'a'), 414},
      {"method of a megabyte", std::string(1 << 20, 'A'), 414},
      // Ends of lines.
      {"bare LF", "POST /echo HTTP/1.1\nHost: localhost\n\n", 400},
      {"bare LF in fields", "POST /echo HTTP/1.1\r\nHost: localhost\nX: 1\r\n\r\n", 400},
      {"bare CR", "POST /echo HTTP/1.1\rHost: localhost\r\r", 400},
      {"CR in a value", field("X: a\rb"), 400},
      {"LF CR", "POST /echo HTTP/1.1\n\rHost: localhost\n\r\n\r", 400},
      // Fields.
      {"folded", field("X: a\r\n b"), 400},
      {"folded by tab", field("X: a\r\n\tb"), 400},
      {"NUL in a value", field("X: a\0b"s), 400},
      {"control in a value", field("X: a\x01"s), 400},
      {"DEL in a value", field("X: a\x7f"s), 400},
      {"no colon", field("X"), 400},
      {"no name", field(": a"), 400},
      {"space before colon", field("Content-Length : 5") + "hello", 400},
      {"space in a name", field("X Y: a"), 400},
      {"high byte in a name", field("X\xc3\xa9: a"), 400},
      {"space first", "POST /echo HTTP/1.1\r\n Host: localhost\r\n\r\n", 400},
      {"a hundred thousand fields",
       [] {
         std::string out = "GET /echo HTTP/1.1\r\nHost: localhost\r\n";
         for (int i = 0; i < 100'000; ++i) out += "X: 1\r\n";
         return out;
       }(),
       431},
      {"a field of a megabyte", "GET /echo HTTP/1.1\r\nX: " + std::string(1 << 20, 'x'), 431},
      // Where the body ends.
      {"length and chunked", field("Content-Length: 5\r\nTransfer-Encoding: chunked") + "0\r\n\r\n",
       400},
      {"chunked and length", field("Transfer-Encoding: chunked\r\nContent-Length: 5") + "0\r\n\r\n",
       400},
      {"two lengths", field("Content-Length: 5\r\nContent-Length: 6") + "hello!", 400},
      {"equal lengths", field("Content-Length: 5\r\nContent-Length: 5") + "hello", 400},
      {"list of lengths", field("Content-Length: 5, 5") + "hello", 400},
      {"length +5", field("Content-Length: +5") + "hello", 400},
      {"length -5", field("Content-Length: -5") + "hello", 400},
      {"length 0x5", field("Content-Length: 0x5") + "hello", 400},
      {"length 5.0", field("Content-Length: 5.0") + "hello", 400},
      {"length 5 5", field("Content-Length: 5 5") + "hello", 400},
      {"length empty", field("Content-Length:"), 400},
      {"length of 20 digits", field("Content-Length: 18446744073709551616"), 400},
      {"length of 30 digits", field("Content-Length: 000000000000000000000000000005") + "hello",
       400},
      {"length over the limit", field("Content-Length: 100000000000"), 413},
      {"identity", field("Transfer-Encoding: identity"), 400},
      {"gzip, chunked", field("Transfer-Encoding: gzip, chunked") + "0\r\n\r\n", 400},
      {"chunked, chunked", field("Transfer-Encoding: chunked, chunked") + "0\r\n\r\n", 400},
      {"xchunked", field("Transfer-Encoding: xchunked") + "0\r\n\r\n", 400},
      {"chunked;q", field("Transfer-Encoding: chunked;q=1") + "0\r\n\r\n", 400},
      {"chunked twice",
       field("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked") + "0\r\n\r\n", 400},
      {"chunked and identity",
       field("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity") + "0\r\n\r\n", 400},
      {"coding empty", field("Transfer-Encoding:"), 400},
      {"chunked in 1.0", "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      // Chunks.
      {"chunk 0x10", chunked("0x10\r\n0123456789abcdef\r\n0\r\n\r\n"), 400},
      {"chunk +1", chunked("+1\r\nx\r\n0\r\n\r\n"), 400},
      {"chunk -1", chunked("-1\r\nx\r\n0\r\n\r\n"), 400},
      {"chunk 1_0", chunked("1_0\r\nx\r\n0\r\n\r\n"), 400},
      {"chunk of 17 digits", chunked("10000000000000000\r\nx\r\n0\r\n\r\n"), 400},
      {"chunk of 16 digits", chunked("ffffffffffffffff\r\nx\r\n0\r\n\r\n"), 413},
      {"chunk empty", chunked("\r\nx\r\n0\r\n\r\n"), 400},
      {"chunk of space", chunked(" 1\r\nx\r\n0\r\n\r\n"), 400},
      {"chunk of letters", chunked("xyz\r\n"), 400},
      {"chunk by bare LF", chunked("1\nx\n0\n\n"), 400},
      {"chunk without its end", chunked("1\r\nxy\r\n0\r\n\r\n"), 400},
      {"chunk too long by one", chunked("2\r\nx\r\n0\r\n\r\n"), 400},
      {"last chunk by bare LF", chunked("1\r\nx\r\n0\r\n\n"), 400},
      {"extension without end", chunked("1;" + std::string(1 << 20, 'a')), 400},
      {"quoted extension without end", chunked("1;a=\"" + std::string(1 << 20, 'a')), 400},
      {"trailers without end",
       [] {
         std::string out = chunked("0\r\n");
         for (int i = 0; i < 100'000; ++i) out += "X: 1\r\n";
         return out;
       }(),
       400},
      {"trailer without colon", chunked("0\r\nX\r\n\r\n"), 400},
  };
}

class MalformedTest : public ::testing::Test {
 protected:
  MalformedTest() { set_log_level(LogLevel::kError); }
  ~MalformedTest() override { set_log_level(LogLevel::kInfo); }
  static HttpOptions options() {
    HttpOptions out;
    out.port = 0;
    return out;
  }
  RunningServer server_{options(), {{"POST", "/echo", echo, false}, {"GET", "/echo", echo, false}}};
};

TEST_F(MalformedTest, CorpusIsRefused) {
  for (const auto& bad : corpus()) {
    SCOPED_TRACE(bad.name);
    Client client(server_.port());
    client.send(bad.bytes);
    auto answer = client.response();
    EXPECT_EQ(answer.status, bad.status);
    EXPECT_EQ(answer.header("connection"), "close");
    client.finish();
    EXPECT_TRUE(client.ends());
    EXPECT_EQ(client.rest(), "");  // nothing after it was taken for a request
    EXPECT_EQ(ask(server_.port(), post("/echo", "exact")).body, "exact");
  }
}

TEST_F(MalformedTest, OneByteAtATimeIsTheSame) {
  for (const auto& bad : corpus()) {
    if (bad.bytes.size() > 200) continue;
    SCOPED_TRACE(bad.name);
    HttpOptions limits;
    HeadScanner scanner(limits.max_header_bytes, limits.max_headers);
    RequestParser parser(limits.max_header_bytes, limits.max_body_bytes);
    HttpRequest request;
    int status = 0;
    std::size_t length = 0;
    for (std::size_t n = 1; n <= bad.bytes.size() && !length && !status; ++n) {
      length = scanner.scan(std::string_view(bad.bytes).substr(0, n));
      if (scanner.error()) status = scanner.error()->status;
    }
    if (length) {
      auto problem = parser.head(std::string_view(bad.bytes).substr(0, length), request);
      if (problem) status = problem->status;
    }
    std::string pending;
    for (std::size_t n = length; n < bad.bytes.size() && length && !status; ++n) {
      ASSERT_FALSE(parser.done());
      pending += bad.bytes[n];
      std::size_t used = 0;
      auto problem = parser.body(pending, used);
      pending.erase(0, used);
      if (problem) status = problem->status;
    }
    EXPECT_EQ(status, bad.status);
  }
}

TEST_F(MalformedTest, OddButRight) {
  struct Good {
    std::string bytes, body;
  };
  const Good cases[] = {
      {"\r\n\r\n" + post("/echo", "a"), "a"},
      {chunked("1\r\na\r\n0\r\n\r\n"), "a"},
      {chunked("01\r\na\r\nA;x=y;z=\"q;\\\"\"\r\n0123456789\r\n0;last\r\nX: trailer\r\n\r\n"),
       "a0123456789"},
      {field("Transfer-Encoding: Chunked") + "0\r\n\r\n", ""},
      {field("content-length:    3  ") + "abc", "abc"},
      {field("Content-Length: 003") + "abc", "abc"},
      {field("X: \xc3\xa9\xff\r\nContent-Length: 1") + "a", "a"},
      {field("X:\r\nContent-Length: 1") + "a", "a"},
  };
  for (const auto& good : cases) {
    auto answer = ask(server_.port(), good.bytes);
    EXPECT_EQ(answer.status, 200) << good.bytes << answer.body;
    EXPECT_EQ(answer.body, good.body);
  }
}

TEST_F(MalformedTest, TrailersAreNotHeaders) {
  HttpOptions limits;
  RequestParser parser(limits.max_header_bytes, limits.max_body_bytes);
  HttpRequest request;
  std::string head = field("Transfer-Encoding: chunked");
  ASSERT_FALSE(parser.head(head, request));
  auto before = request.headers;
  std::size_t used = 0;
  parser.body("0\r\nAuthorization: Bearer x\r\n\r\n", used);
  EXPECT_TRUE(parser.done());
  EXPECT_EQ(request.headers, before);
}

TEST_F(MalformedTest, AMillionChunksOfOneByte) {
  std::string chunks;
  for (int i = 0; i < 10'000; ++i) chunks += fmt::format("1\r\n{}\r\n", i % 10);
  Client client(server_.port());
  client.send(field("Transfer-Encoding: chunked"));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client.send(chunks));
  client.send("0\r\n\r\n");
  auto answer = client.response();
  ASSERT_EQ(answer.status, 200);
  ASSERT_EQ(answer.body.size(), 1'000'000u);
  for (int i = 0; i < 1'000'000; ++i) ASSERT_EQ(answer.body[i], '0' + i % 10);
}

TEST_F(MalformedTest, ExtensionsThatOutweighTheBodyEnd) {
  auto small = options();
  small.max_body_bytes = 1000;
  RunningServer server(small, {{"POST", "/echo", echo, false}});
  Client client(server.port());
  client.send(field("Transfer-Encoding: chunked"));
  std::string chunk = "1;" + std::string(4000, 'a') + "\r\nx\r\n";
  for (int i = 0; i < 200 && client.send(chunk); ++i) {
  }
  EXPECT_EQ(client.response().status, 413);
}

// Mutations of good requests: any answer or none, in bounded time; the server stays exact.
TEST_F(MalformedTest, RandomBytes) {
  std::mt19937 random(7);
  const std::string seeds[] = {post("/echo", "hello"), chunked("5\r\nhello\r\n0\r\n\r\n"),
                               get("/echo") + get("/echo")};
  for (int i = 0; i < 1500; ++i) {
    std::string bytes = seeds[random() % 3];
    for (unsigned n = random() % 4; n-- > 0;) {
      std::size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, random() % 5);
          break;
        default:
          bytes.insert(at, 1, "\r\n \t:;0x,/"[random() % 10]);
      }
    }
    Client client(server_.port());
    client.send(bytes);
    client.finish();
    ASSERT_TRUE(client.ends()) << bytes;
    if (i % 100 == 0) {
      ASSERT_EQ(ask(server_.port(), post("/echo", "exact")).body, "exact");
    }
  }
  EXPECT_TRUE(eventually([&] { return server_->counts().connections == 0; }));
}

}  // namespace
}  // namespace vitrine
