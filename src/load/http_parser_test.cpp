#include "load/http_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace vitrine::load {
namespace {

const std::string kChunked =
    "HTTP/1.1 100 Continue\r\n\r\n"
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\ntransfer-ENCODING: chunked\r\n\r\n"
    "5;ext=1\r\nhello\r\n1\r\n\n\r\nA\r\n0123456789\r\n0\r\nX-Trailer: 1\r\n\r\n";
const std::string kChunkedBody = "hello\n0123456789";

// Every way to cut `text` in three.
template <typename F>
void for_each_split(const std::string& text, F f) {
  std::string_view all = text;
  for (std::size_t i = 0; i <= all.size(); ++i)
    for (std::size_t j = i; j <= all.size(); ++j)
      f(std::vector<std::string_view>{all.substr(0, i), all.substr(i, j - i), all.substr(j)});
}

TEST(ResponseParser, ChunkedUnderEverySplit) {
  int splits = 0;
  for_each_split(kChunked, [&](const std::vector<std::string_view>& parts) {
    ResponseParser parser;
    std::string body;
    for (std::string_view part : parts) ASSERT_TRUE(parser.feed(part, body));
    ASSERT_TRUE(parser.done());
    ASSERT_EQ(parser.status(), 200);
    ASSERT_TRUE(parser.keep_alive());
    ASSERT_EQ(body, kChunkedBody);
    ++splits;
  });
  EXPECT_GT(splits, 10000);
}

TEST(ResponseParser, ByteByByteIsDoneAtTheLastByteOnly) {
  ResponseParser parser;
  std::string body;
  for (std::size_t i = 0; i < kChunked.size(); ++i) {
    EXPECT_FALSE(parser.done()) << i;
    ASSERT_TRUE(parser.feed(std::string_view(kChunked).substr(i, 1), body));
  }
  EXPECT_TRUE(parser.done());
}

TEST(ResponseParser, ContentLength) {
  ResponseParser parser;
  std::string body;
  ASSERT_TRUE(parser.feed(
      "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 3\r\n\r\na", body));
  EXPECT_FALSE(parser.done());
  ASSERT_TRUE(parser.feed("bc", body));
  EXPECT_TRUE(parser.done());
  EXPECT_EQ(parser.status(), 429);
  EXPECT_FALSE(parser.keep_alive());
  EXPECT_EQ(body, "abc");
  EXPECT_FALSE(parser.feed("d", body)) << "more than was announced";
}

TEST(ResponseParser, BodyUntilTheConnectionCloses) {
  ResponseParser parser;
  std::string body;
  ASSERT_TRUE(parser.feed("HTTP/1.0 200 OK\r\n\r\nabc", body));
  EXPECT_FALSE(parser.done());
  EXPECT_TRUE(parser.close());
  EXPECT_FALSE(parser.keep_alive());
  EXPECT_EQ(body, "abc");
}

TEST(ResponseParser, CutShortIsNotWhole) {
  for (std::size_t cut = 0; cut < kChunked.size(); ++cut) {
    ResponseParser parser;
    std::string body;
    ASSERT_TRUE(parser.feed(std::string_view(kChunked).substr(0, cut), body));
    EXPECT_FALSE(parser.close()) << cut;
  }
}

TEST(ResponseParser, WhatIsNotHttpIsRefused) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  for (std::string bad :
       {std::string("SSH-2.0-OpenSSH\r\n\r\n"), std::string("HTTP/1.1 2x0 OK\r\n\r\n"),
        std::string("\r\n\r\n"), std::string("HTTP/2 200\r\n\r\n"), head + "no colon\r\n\r\n",
        head + "Content-Length: -1\r\n\r\n", head + "Content-Length: 99999999999999999999\r\n\r\n",
        head + "Transfer-Encoding: gzip\r\n\r\n",
        head + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        head + "Transfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
        head + "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        head + "X: " + std::string(70000, 'a')}) {
    ResponseParser parser;
    std::string body;
    EXPECT_FALSE(parser.feed(bad, body)) << bad.substr(0, 60);
    EXPECT_FALSE(parser.done());
  }
}

TEST(SseParser, SameEventsUnderEverySplit) {
  const std::string text =
      ": comment\r\ndata: one\r\n\r\ndata:two\rdata:  lines\r\revent: x\nid: 4\ndata\n\n"
      "retry: 1\n\ndata: [DONE]\n\n";
  const std::vector<std::string> expected{"one", "two\n lines", "", "[DONE]"};
  for_each_split(text, [&](const std::vector<std::string_view>& parts) {
    SseParser parser;
    std::vector<std::string> events;
    for (std::string_view part : parts)
      parser.feed(part, [&](std::string_view data) { events.emplace_back(data); });
    ASSERT_EQ(events, expected);
    ASSERT_FALSE(parser.partial());
  });
}

TEST(SseParser, HalfAFrameIsNoticed) {
  for (const char* text : {"data: x\n\nd", "data: x\n\ndata: y\n", ": com"}) {
    SseParser parser;
    parser.feed(text, [](std::string_view) {});
    EXPECT_TRUE(parser.partial()) << text;
  }
}

TEST(SseParser, AnEndlessLineIsCut) {
  SseParser parser;
  std::string part(1 << 20, 'a');
  for (int i = 0; i < 6; ++i) parser.feed(part, [](std::string_view) {});
  EXPECT_TRUE(parser.overflow());
}

}  // namespace
}  // namespace vitrine::load
