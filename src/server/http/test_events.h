// For tests of event streams: an engine in miniature, handlers that it feeds, and a fixture.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/log.h"
#include "server/http/test_client.h"

namespace vitrine::http_testing {

// Handlers enter a job at the desk; a test's threads produce for it and wake the handler.
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
inline asio::awaitable<void> produce(Desk& desk, Exchange& exchange) {
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
  co_await exchange.end();
}

// As many frames of 10 kB as the query says, as fast as the client takes them.
inline asio::awaitable<void> flood(Desk& desk, Exchange& exchange) {
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
  co_await exchange.end();
}

// Waits without sending, then answers at once.
inline asio::awaitable<void> wait_first(Desk& desk, Exchange& exchange) {
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

inline std::string expected(int frames) {
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
    out.write_timeout = std::chrono::seconds(1);
    return out;
  }
  std::shared_ptr<Job> job(std::size_t index) {
    EXPECT_TRUE(eventually([&] { return desk_.jobs().size() > index; }));
    return desk_.jobs().at(index);
  }

  Desk desk_;
};

}  // namespace vitrine::http_testing
