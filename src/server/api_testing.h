// For tests of the API: a tiny model with a tokenizer of single characters, and an exchange that
// keeps what a handler says.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/json.h"
#include "chat/chat_template.h"
#include "engine/engine.h"
#include "nn/test_llama.h"
#include "server/answer/generation.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {
// In the endpoints' files.
extern const TextEndpoint kCompletions, kChatCompletions;
}  // namespace vitrine

namespace vitrine::test {

inline constexpr int kVocab = 64, kContext = 512, kNanToken = kVocab - 1;
inline constexpr int kBos = 0, kEos = 1, kImStart = 2, kImEnd = 3;

// Tokens 4 on: a to z, A to Z, space, newline, ':', '.', '#', 0.
inline std::string token_text(int id) {
  static const std::string kTexts = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \n:.#0";
  return kTexts.substr(static_cast<std::size_t>(id) - 4, 1);
}

inline std::string tokenizer_json(bool chatml) {
  const char* special[] = {"<s>", "</s>", chatml ? "<|im_start|>" : "<x>",
                           chatml ? "<|im_end|>" : "<y>"};
  json::array added;
  json::object ids;
  for (int i = 0; i < 4; ++i) {
    ids[special[i]] = i;
    added.push_back(json::object{{"id", i}, {"content", special[i]}, {"special", true}});
  }
  for (int i = 4; i < kNanToken - 1; ++i) {
    std::string text = token_text(i);
    // Byte-level BPE writes a space as Ġ and a newline as Ċ.
    ids[text == " " ? "Ġ" : text == "\n" ? "Ċ" : text] = i;
  }
  json::object post{
      {"type", "TemplateProcessing"},
      {"single", json::array{json::object{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
                             json::object{{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"pair", json::array{}},
      {"special_tokens",
       {{"<s>", {{"id", "<s>"}, {"ids", json::array{0}}, {"tokens", json::array{"<s>"}}}}}}};
  json::object level{{"type", "ByteLevel"},
                     {"add_prefix_space", false},
                     {"trim_offsets", true},
                     {"use_regex", true}};
  return json::serialize(
      json::object{{"version", "1.0"},
                   {"added_tokens", added},
                   {"normalizer", nullptr},
                   {"pre_tokenizer", level},
                   {"post_processor", post},
                   {"decoder", level},
                   {"model", {{"type", "BPE"}, {"vocab", ids}, {"merges", json::array{}}}}});
}

inline std::unique_ptr<Tokenizer> tiny_tokenizer(bool chatml = true) {
  auto made =
      Tokenizer::from_json(tokenizer_json(chatml), R"({"bos_token":"<s>","eos_token":"</s>"})");
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made).value();
}

inline std::shared_ptr<const ModelFile> tiny_model() {
  return make_tiny_llama({.vocab = kVocab, .context = kContext, .eos = kEos, .seed = 3});
}

// An exchange without a connection: the test sees what was sent, and decides when the client
// leaves.
class FakeExchange : public Exchange {
 public:
  FakeExchange(asio::io_context& io, std::string body) : timer_(std::make_shared<Timer>(io)) {
    request_.method = "POST";
    request_.id = "req-1";
    request_.body = std::move(body);
  }
  HttpRequest& mutable_request() { return request_; }

  asio::awaitable<void> reply(int status, std::string_view type, std::string body,
                              Headers headers) override {
    EXPECT_EQ(this->status, 0) << "two answers";
    this->status = status, content_type = type, this->body = std::move(body),
    this->headers = std::move(headers);
    co_return;
  }
  asio::awaitable<void> reply_static(int status, std::string_view type, std::string_view body,
                                     Headers headers) override {
    return reply(status, type, std::string(body), std::move(headers));
  }
  asio::awaitable<void> begin(std::string_view type, Headers) override {
    EXPECT_EQ(status, 0) << "two answers";
    status = 200, content_type = type;
    streaming = true;
    co_return;
  }
  bool hold(std::int64_t bytes) override {
    if (bytes > most_held) return false;
    held = bytes;
    return true;
  }
  asio::awaitable<bool> send(std::string frames) override {
    if (gone()) co_return false;
    sent += frames.size();
    largest = std::max(largest, frames.size());
    if (keep) body += frames;
    if (leave_after_bytes > 0 && body.size() >= leave_after_bytes) gone_ = true;
    co_return !gone_;
  }
  asio::awaitable<void> end() override {
    ended = true;
    co_return;
  }
  std::function<void()> waker() override {
    return [timer = timer_] {
      timer->pending = true;
      asio::post(timer->timer.get_executor(), [timer] { timer->timer.cancel(); });
    };
  }
  asio::awaitable<bool> wait() override {
    while (!timer_->pending.exchange(false) && !gone_) {
      timer_->timer.expires_after(std::chrono::milliseconds(20));
      boost::system::error_code ignored;
      co_await timer_->timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    if (on_wait) on_wait();
    co_return !gone_;
  }
  asio::awaitable<bool> wait_for(std::chrono::milliseconds most) override {
    timer_->timer.expires_after(most);
    boost::system::error_code ignored;
    co_await timer_->timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (on_wait) on_wait();
    co_return !gone_;
  }
  bool gone() const override { return gone_; }
  void leave() { gone_ = true; }

  int status = 0;
  bool streaming = false, ended = false;
  std::string content_type, body;
  Headers headers;
  std::int64_t held = 0, most_held = INT64_MAX;
  bool keep = true;         // what is sent in pieces, in `body`
  std::size_t sent = 0;     // bytes of it
  std::size_t largest = 0;  // of the pieces
  std::size_t leave_after_bytes = 0;
  int worker_jobs = 0;       // jobs that a worker was given
  int leave_during_job = 0;  // the number of the job at whose end the client is gone; 0: none
  std::function<void()> on_wait;

 protected:
  asio::awaitable<void> run_on_worker(std::function<void()> f) override {
    ++worker_jobs;
    f();
    if (leave_during_job == worker_jobs) leave();
    co_return;
  }

 private:
  struct Timer {
    explicit Timer(asio::io_context& io) : timer(io) {}
    asio::steady_timer timer;
    std::atomic<bool> pending{false};
  };
  std::shared_ptr<Timer> timer_;
  bool gone_ = false;
};

}  // namespace vitrine::test
