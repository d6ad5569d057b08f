// For tests of the transport: handlers, routes and a fixture.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <stdexcept>

#include "base/log.h"
#include "server/http/test_client.h"

namespace vitrine::http_testing {

inline asio::awaitable<void> hello(Exchange& exchange) {
  co_await exchange.reply(200, "text/plain", "hello");
}

inline asio::awaitable<void> echo(Exchange& exchange) {
  std::string body = exchange.request().body;
  co_await exchange.reply(200, "application/octet-stream", std::move(body));
}

inline asio::awaitable<void> size(Exchange& exchange) {
  std::string text = std::to_string(exchange.request().body.size());
  co_await exchange.reply(200, "text/plain", std::move(text));
}

inline asio::awaitable<void> item(Exchange& exchange) {
  std::string text = "item " + std::string(exchange.request().argument);
  Headers headers;
  headers.emplace_back("x-bad", "a\r\nx-injected: 1");
  co_await exchange.reply(200, "text/plain", std::move(text), std::move(headers));
}

inline asio::awaitable<void> fail(Exchange&) {
  throw std::runtime_error("the secret is in /etc/secret at 0xdeadbeef");
  co_return;
}

inline asio::awaitable<void> fail_late(Exchange& exchange) {
  co_await exchange.begin_events();
  co_await exchange.send("data: 1\n\n");
  throw std::runtime_error("late");
}

inline asio::awaitable<void> silent(Exchange&) { co_return; }

inline asio::awaitable<void> worker(Exchange& exchange) {
  auto here = std::this_thread::get_id();
  auto report = co_await exchange.on_worker([here] {
    auto id = static_cast<id_t>(::syscall(SYS_gettid));
    int nice = ::getpriority(PRIO_PROCESS, id);
    return fmt::format("{} {}", std::this_thread::get_id() != here, nice);
  });
  co_await exchange.reply(200, "text/plain", std::move(report));
}

inline asio::awaitable<void> worker_fails(Exchange& exchange) {
  co_await exchange.on_worker([] { throw std::runtime_error("in a worker"); });
  co_await exchange.reply(200, "text/plain", "not reached");
}

inline asio::awaitable<void> tenant(Exchange& exchange) {
  const auto& request = exchange.request();
  std::string text = fmt::format("{} {}", request.tenant, request.rights.weight);
  co_await exchange.reply(200, "text/plain", std::move(text));
}

inline std::vector<Route> routes() {
  return {{"GET", "/hello", hello, false},         {"GET", "/health", hello, true},
          {"POST", "/echo", echo, false},          {"POST", "/size", size, false},
          {"GET", "/items/*", item, false},        {"GET", "/items/exact", hello, false},
          {"GET", "/fail", fail, false},           {"GET", "/fail-late", fail_late, false},
          {"GET", "/silent", silent, false},       {"GET", "/worker", worker, false},
          {"GET", "/tenant", tenant, false},       {"GET", "/worker-fails", worker_fails, false},
          {"POST", "/items/*/parts", item, false}, {"DELETE", "/items/*", item, false}};
}

inline HttpOptions options() {
  HttpOptions out;
  out.port = 0;
  out.io_threads = 2;
  out.worker_threads = 2;
  return out;
}

class HttpTest : public ::testing::Test {
 protected:
  HttpTest() { set_log_level(LogLevel::kError); }
  ~HttpTest() override { set_log_level(LogLevel::kInfo); }
};

inline void expect_error(const Response& response, int status) {
  EXPECT_EQ(response.status, status) << response.body;
  EXPECT_GT(response.body.size(), 1u);
  EXPECT_THAT(response.body, ::testing::Not(::testing::HasSubstr("0x")));
  EXPECT_THAT(response.body, ::testing::Not(::testing::HasSubstr("/etc")));
  EXPECT_FALSE(response.header("x-request-id").empty());
  EXPECT_EQ(response.header("content-type"), "text/plain; charset=utf-8");
}

}  // namespace vitrine::http_testing
