#include "server/http/exchange.h"

#include "base/log.h"
#include "server/http/response.h"

namespace vitrine {

ConnectionExchange::ConnectionExchange(Connection& connection)
    : connection_(connection), number_(connection.begin_exchange()) {}

ConnectionExchange::~ConnectionExchange() { connection_.core().body_bytes -= held_; }

bool ConnectionExchange::hold_body(std::int64_t bytes) {
  auto& core = connection_.core();
  bool fits = (core.body_bytes += bytes - held_) <= core.options.max_bodies_bytes;
  held_ = bytes;
  if (fits) return true;
  core.body_bytes -= held_;
  held_ = 0;
  return false;
}

std::string ConnectionExchange::head(int status, Headers first, Headers headers) {
  status_ = status;
  if (connection_.core().draining) keep_alive = false;
  if (!keep_alive)
    first.emplace_back("Connection", "close");
  else if (!http11)
    first.emplace_back("Connection", "keep-alive");
  first.emplace_back("x-request-id", request_.id);
  first.emplace_back("X-Content-Type-Options", "nosniff");
  first.insert(first.end(), common_headers.begin(), common_headers.end());
  first.insert(first.end(), std::make_move_iterator(headers.begin()),
               std::make_move_iterator(headers.end()));
  return response_head(status, first);
}

asio::awaitable<bool> ConnectionExchange::write(std::string data) {
  auto size = static_cast<std::int64_t>(data.size());
  bool ok = co_await connection_.write(std::move(data));
  if (ok)
    bytes_ += size;
  else
    state_ = State::kBroken;
  co_return ok;
}

asio::awaitable<void> ConnectionExchange::reply(int status, std::string_view content_type,
                                                std::string body, Headers headers) {
  if (state_ != State::kNone) {
    LogLine(LogLevel::kError, "second answer dropped").field("id", request_.id);
    co_return;
  }
  Headers first;
  if (!content_type.empty()) first.emplace_back("Content-Type", content_type);
  if (status != 204) first.emplace_back("Content-Length", std::to_string(body.size()));
  std::string data = head(status, std::move(first), std::move(headers));
  if (request_.method != "HEAD" && status != 204) data += body;
  body = {};
  state_ = State::kDone;
  co_await write(std::move(data));
}

asio::awaitable<void> ConnectionExchange::refuse(HttpError error, Headers headers) {
  refused_ = true;
  HttpBody body = connection_.core().service.write_error(error);
  co_await reply(error.status, body.content_type, std::move(body.text), std::move(headers));
}

asio::awaitable<void> ConnectionExchange::begin_events(Headers headers) {
  if (state_ != State::kNone) {
    LogLine(LogLevel::kError, "second answer dropped").field("id", request_.id);
    co_return;
  }
  chunked_ = http11;
  if (!chunked_) keep_alive = false;
  Headers first;
  first.emplace_back("Content-Type", "text/event-stream; charset=utf-8");
  first.emplace_back("Cache-Control", "no-cache");
  first.emplace_back("X-Accel-Buffering", "no");
  if (chunked_) first.emplace_back("Transfer-Encoding", "chunked");
  state_ = State::kEvents;
  std::string data = head(200, std::move(first), std::move(headers));
  co_await write(std::move(data));
}

asio::awaitable<bool> ConnectionExchange::send(std::string frames) {
  if (state_ != State::kEvents || gone() || request_.method == "HEAD") co_return false;
  if (frames.empty()) co_return true;
  if (chunked_) {
    frames.insert(0, fmt::format("{:x}\r\n", frames.size()));
    frames += "\r\n";
  }
  bool ok = co_await write(std::move(frames));
  co_return ok;
}

asio::awaitable<void> ConnectionExchange::end_events() {
  if (state_ != State::kEvents) co_return;
  state_ = State::kDone;
  if (chunked_ && request_.method != "HEAD") co_await write("0\r\n\r\n");
}

std::function<void()> ConnectionExchange::waker() {
  if (!target_) {
    target_ = std::make_shared<WakeTarget>();
    target_->connection = connection_.weak_from_this();
    target_->number = number_;
  }
  return [hub = connection_.core().wakes, target = target_] { hub->wake(target); };
}

asio::awaitable<bool> ConnectionExchange::wait() { return connection_.wait_woken(); }

asio::awaitable<void> ConnectionExchange::run_on_worker(std::function<void()> f) {
  return connection_.run_on_worker(std::move(f));
}

void ConnectionExchange::log() const {
  std::chrono::duration<double, std::milli> taken = Clock::now() - started_;
  LogLine line(refused_ ? LogLevel::kWarn : LogLevel::kInfo, "request");
  line.field("method", request_.method)
      .field("path", request_.path)
      .field("status", std::int64_t{status_})
      .field("bytes", bytes_)
      .field("ms", taken.count())
      .field("id", request_.id);
  if (!request_.tenant.empty()) line.field("tenant", request_.tenant);
  if (state_ != State::kDone) line.field("cut", std::string_view("yes"));
}

}  // namespace vitrine
