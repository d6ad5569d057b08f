#include "server/http/exchange.h"

#include "base/log.h"
#include "base/process_clock.h"
#include "server/http/response.h"

namespace vitrine {
namespace {

// Answers up to this size are sent with their head at once, and never refused.
constexpr std::size_t kSmallAnswer = 64 << 10;

bool has_body(int status) { return status != 204 && status != 304; }

}  // namespace

ConnectionExchange::ConnectionExchange(Connection& connection)
    : connection_(connection), number_(connection.begin_exchange()) {
  request_.received_ns = process_ns();
}

ConnectionExchange::~ConnectionExchange() {
  if (written_) written_->done = true;
}

void ConnectionExchange::note_writing() {
  request_.written = written_ = std::make_shared<Written>();
}

bool ConnectionExchange::hold_body(std::int64_t bytes) {
  auto& core = connection_.core();
  return core.body_bytes.set(held_body_, request_.tenant, bytes, core.options.max_bodies_bytes);
}

bool ConnectionExchange::hold(std::int64_t bytes) {
  auto& core = connection_.core();
  return core.answer_bytes.set(held_answer_, request_.tenant, bytes,
                               core.options.max_answers_bytes);
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
  if (request_.use) request_.use->add_headers(first);
  first.insert(first.end(), std::make_move_iterator(headers.begin()),
               std::make_move_iterator(headers.end()));
  return response_head(status, first);
}

// `tail` is nobody's memory: it does not count.
asio::awaitable<bool> ConnectionExchange::write(std::string data, std::string more,
                                                std::string_view tail) {
  auto size = static_cast<std::int64_t>(data.size() + more.size());
  auto held = connection_.core().answer_bytes.take(request_.tenant, size);
  bool ok = co_await connection_.write(std::move(data));
  if (ok && !(more.empty() && tail.empty())) ok = co_await connection_.write(std::move(more), tail);
  held.release();
  if (ok) {
    bytes_ += size + static_cast<std::int64_t>(tail.size());
    if (written_) {
      written_->last_ns = process_ns();
      if (written_->first_ns == 0) written_->first_ns = written_->last_ns.load();
      written_->bytes = bytes_;
    }
  } else {
    state_ = State::kBroken;
  }
  co_return ok;
}

// A handler that answers twice is wrong; the first answer counts.
bool ConnectionExchange::answered() const {
  if (state_ == State::kNone) return false;
  LogLine(LogLevel::kError, "second answer dropped").field("id", request_.id);
  return true;
}

// Of an answer that is sent whole. No request is in work after it.
std::string ConnectionExchange::whole_head(int status, std::string_view content_type,
                                           std::size_t bytes, Headers headers) {
  Headers first;
  if (!content_type.empty()) first.emplace_back("Content-Type", content_type);
  if (has_body(status)) first.emplace_back("Content-Length", std::to_string(bytes));
  std::string data = head(status, std::move(first), std::move(headers));
  state_ = State::kDone;
  if (request_.use) request_.use->end();
  return data;
}

asio::awaitable<void> ConnectionExchange::reply(int status, std::string_view content_type,
                                                std::string body, Headers headers) {
  if (answered()) co_return;
  const auto& core = connection_.core();
  if (body.size() > kSmallAnswer &&
      !core.answer_bytes.would_fit(request_.tenant, static_cast<std::int64_t>(body.size()),
                                   core.options.max_answers_bytes)) {
    body = {};
    Headers later;
    later.emplace_back("Retry-After", "1");
    co_await refuse(too_many_answers(), std::move(later));
    co_return;
  }
  std::string data = whole_head(status, content_type, body.size(), std::move(headers));
  if (request_.method == "HEAD" || !has_body(status)) body = {};
  if (body.size() <= kSmallAnswer) data += std::exchange(body, {});
  co_await write(std::move(data), std::move(body));
}

asio::awaitable<void> ConnectionExchange::reply_static(int status, std::string_view content_type,
                                                       std::string_view body, Headers headers) {
  if (answered()) co_return;
  std::string data = whole_head(status, content_type, body.size(), std::move(headers));
  if (request_.method == "HEAD" || !has_body(status)) body = {};
  co_await write(std::move(data), {}, body);
}

asio::awaitable<void> ConnectionExchange::refuse(HttpError error, Headers headers) {
  refused_ = true;
  HttpBody body = connection_.core().service.write_error(error);
  co_await reply(error.status, body.content_type, std::move(body.text), std::move(headers));
}

asio::awaitable<void> Exchange::begin_events() {
  return begin("text/event-stream; charset=utf-8",
               {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}});
}

asio::awaitable<void> ConnectionExchange::begin(std::string_view content_type, Headers headers) {
  if (answered()) co_return;
  chunked_ = http11;
  if (!chunked_) keep_alive = false;
  Headers first;
  first.emplace_back("Content-Type", content_type);
  if (chunked_) first.emplace_back("Transfer-Encoding", "chunked");
  state_ = State::kPieces;
  request_.body = {};
  hold_body(0);
  std::string data = head(200, std::move(first), std::move(headers));
  co_await write(std::move(data));
}

asio::awaitable<bool> ConnectionExchange::send(std::string piece) {
  if (state_ != State::kPieces || gone() || request_.method == "HEAD") co_return false;
  if (piece.empty()) co_return true;
  if (chunked_) {
    piece.insert(0, fmt::format("{:x}\r\n", piece.size()));
    piece += "\r\n";
  }
  bool ok = co_await write(std::move(piece));
  co_return ok;
}

asio::awaitable<void> ConnectionExchange::end() {
  if (state_ != State::kPieces) co_return;
  state_ = State::kDone;
  if (request_.use) request_.use->end();
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

asio::awaitable<bool> ConnectionExchange::wait() {
  return connection_.wait_woken(Clock::time_point::max());
}

asio::awaitable<bool> ConnectionExchange::wait_for(std::chrono::milliseconds most) {
  return connection_.wait_woken(Clock::now() + most);
}

asio::awaitable<void> ConnectionExchange::run_on_worker(std::function<void()> f) {
  return connection_.run_on_worker(request_, [this, f = std::move(f)] {
    if (request_.taken_ns == 0) request_.taken_ns = process_ns();
    f();
  });
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
