// The answer to one request, over a Connection.
#pragma once

#include <memory>
#include <string>

#include "server/http/connection.h"

namespace vitrine {

class ConnectionExchange final : public Exchange {
 public:
  explicit ConnectionExchange(Connection& connection);
  ~ConnectionExchange() override;
  void note_writing();  // in HttpRequest::written

  asio::awaitable<void> reply(int status, std::string_view content_type, std::string body,
                              Headers headers = {}) override;
  asio::awaitable<void> reply_static(int status, std::string_view content_type,
                                     std::string_view body, Headers headers = {}) override;
  asio::awaitable<void> begin(std::string_view content_type, Headers headers = {}) override;
  asio::awaitable<bool> send(std::string piece) override;
  asio::awaitable<void> end() override;
  bool hold(std::int64_t bytes) override;
  std::function<void()> waker() override;
  asio::awaitable<bool> wait() override;
  asio::awaitable<bool> wait_for(std::chrono::milliseconds most) override;
  bool gone() const override { return connection_.gone(); }

  // An error of the transport's own, as the service writes it; logged as a warning.
  asio::awaitable<void> refuse(HttpError error, Headers headers);

  // For the session, which fills these in before the handler runs.
  HttpRequest& mutable_request() { return request_; }
  Headers common_headers;  // of every answer to this request
  bool http11 = true;
  bool keep_alive = false;

  // Whether another request may follow: the answer is complete and the connection stays.
  bool complete() const { return state_ == State::kDone; }
  bool begun() const { return state_ != State::kNone; }
  // Accounts for the memory of the body until the exchange ends; false when there is no more.
  bool hold_body(std::int64_t bytes);
  // One line about the request and its answer.
  void log() const;

 protected:
  asio::awaitable<void> run_on_worker(std::function<void()> f) override;

 private:
  enum class State { kNone, kPieces, kDone, kBroken };
  bool answered() const;
  std::string head(int status, Headers first, Headers headers);
  std::string whole_head(int status, std::string_view content_type, std::size_t bytes,
                         Headers headers);
  asio::awaitable<bool> write(std::string data, std::string more = {}, std::string_view tail = {});

  Connection& connection_;
  const std::uint64_t number_;
  std::shared_ptr<Written> written_;  // null: not noted
  const Clock::time_point started_ = Clock::now();
  std::shared_ptr<WakeTarget> target_;
  State state_ = State::kNone;
  bool chunked_ = false;
  bool refused_ = false;
  int status_ = 0;
  std::int64_t bytes_ = 0;  // of the answer, with its head
  ByteBound::Share held_body_, held_answer_;
};

}  // namespace vitrine
