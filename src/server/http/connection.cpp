#include "server/http/connection.h"

#include <poll.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <new>
#include <stdexcept>
#include <thread>

#include "base/memory_reserve.h"

namespace vitrine {
namespace {

constexpr std::size_t kReadSize = 8 << 10;
// Bytes received ahead of their use: of a body that is being parsed, or of requests that were sent
// before the last was answered.
constexpr std::size_t kReadAhead = 64 << 10;
constexpr auto kLinger = std::chrono::seconds(1);
constexpr auto kHangUpCheck = std::chrono::milliseconds(200);
constexpr auto kTryAgain = std::chrono::milliseconds(1);

}  // namespace

Connection::Connection(ServerCore& core, asio::any_io_executor strand)
    : core_(core), strand_(strand), timer_(strand), read_buffer_(kReadSize) {}

void Connection::poke() {
  asio::post(strand_, [self = shared_from_this()] {
    if (self->core_.stopping) self->close();
    self->notify();
  });
}

void Connection::deliver(std::uint64_t number) {
  asio::dispatch(strand_, [self = shared_from_this(), number] {
    if (self->exchange_ != number) return;
    self->woken_ = true;
    self->notify();
  });
}

asio::awaitable<bool> Connection::handshake() {
  handshaking_ = true;
  start_handshake();
  bool in_time = co_await until(Clock::now() + core_.options.header_timeout,
                                [this] { return !handshaking_ || closed_; });
  co_return in_time && !handshake_failed_ && !closed_;
}

void Connection::on_handshake(IoError error) {
  handshaking_ = false;
  handshake_failed_ = static_cast<bool>(error);
  notify();
}

void Connection::consume(std::size_t bytes) {
  input_.erase(0, bytes);
  if (input_.empty() && input_.capacity() > kReadSize) input_ = {};
  read_ahead();
}

void Connection::read_ahead() {
  if (input_.size() < kReadAhead || discarding_) read();
}

void Connection::read() {
  if (reading_ || gone()) return;
  start_read(read_buffer_);
  reading_ = true;
}

// No session hears of an exception in here: what cannot go on is closed.
void Connection::on_read(IoError error, std::size_t bytes) {
  reading_ = false;
  try {
    if (error) {
      ended_ = true;
    } else if (!discarding_) {
      input_.append(read_buffer_.data(), bytes);
    }
    read_ahead();
  } catch (const std::bad_alloc&) {
    close();
  }
  notify();
}

asio::awaitable<Connection::Input> Connection::more_input(std::size_t have,
                                                          Clock::time_point deadline) {
  if (input_.size() <= have) read();
  bool in_time = co_await until(deadline, [this, have] { return input_.size() > have || gone(); });
  if (input_.size() > have) co_return Input::kMore;
  co_return in_time ? Input::kEnded : Input::kTimeout;
}

asio::awaitable<Connection::Input> Connection::first_input(Clock::time_point deadline) {
  read_ahead();
  bool in_time = co_await until(
      deadline, [this] { return !input_.empty() || gone() || core_.draining.load(); });
  if (!input_.empty()) co_return Input::kMore;
  co_return in_time ? Input::kEnded : Input::kTimeout;
}

asio::awaitable<bool> Connection::write(std::string data, std::string_view tail) {
  if (closed_ || write_failed_) co_return false;
  output_ = std::move(data);
  written_ = 0;
  const std::size_t size = output_.size();
  try {
    while (written_ < size + tail.size()) {
      if (closed_ || write_failed_) co_return false;
      start_write(written_ < size ? std::string_view(output_).substr(written_)
                                  : tail.substr(written_ - size));
      writing_ = true;
      bool in_time =
          co_await until(Clock::now() + core_.options.write_timeout, [this] { return !writing_; });
      if (!in_time) {
        close();
        co_await until(Clock::time_point::max(), [this] { return !writing_; });
      }
    }
  } catch (const std::bad_alloc&) {
    // No timer to wait with. What is being written stays as long as the connection.
    write_failed_ = true;
    close();
    throw;
  }
  output_ = {};
  co_return !write_failed_ && !closed_;
}

void Connection::on_write(IoError error, std::size_t bytes) {
  writing_ = false;
  written_ += bytes;
  if (error) {
    write_failed_ = true;
    close();
  }
  notify();
}

std::uint64_t Connection::begin_exchange() {
  woken_ = false;
  return ++exchange_;
}

// While reading is paused (the client has sent much ahead) an end of the stream would not be read;
// the system is asked for it now and then.
void Connection::check_hang_up() {
  if (!read_paused()) return;
  pollfd state{descriptor(), POLLRDHUP, 0};
  if (::poll(&state, 1, 0) == 1 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR))) ended_ = true;
}

asio::awaitable<bool> Connection::wait_woken(Clock::time_point deadline) {
  read_ahead();
  for (;;) {
    check_hang_up();
    if (woken_ || gone() || Clock::now() >= deadline) break;
    const bool paused = read_paused();
    auto look_again = paused ? std::min(deadline, Clock::now() + kHangUpCheck) : deadline;
    co_await until(look_again,
                   [this, paused] { return woken_ || gone() || read_paused() != paused; });
  }
  woken_ = false;
  co_return !gone();
}

asio::awaitable<void> Connection::run_on_worker(const HttpRequest& request,
                                                std::function<void()> f) {
  // The job refers to this frame, which outlives it: the session waits here for `done`, and the
  // server joins the workers before it drops what still waits.
  std::atomic<bool> done = false;
  std::exception_ptr error;
  auto job = [&f, &done, &error, self = shared_from_this()] {
    try {
      // Work that nobody waits for any more would only delay the end.
      if (self->core_.stopping) throw std::runtime_error("the server has stopped");
      f();
    } catch (...) {
      error = std::current_exception();
    }
    done = true;  // the frame may be gone from here on
    insist([&self] { asio::post(self->strand_, [self] { self->notify(); }); });
  };
  core_.workers.post(request.tenant, request.rights.weight, std::move(job));
  try {
    co_await until(Clock::time_point::max(), [&done] { return done.load(); });
  } catch (const std::bad_alloc&) {
    // Not even a timer is to be had. The job must not lose this frame.
    while (!done) std::this_thread::sleep_for(kTryAgain);
  }
  if (error) std::rethrow_exception(error);
}

asio::awaitable<void> Connection::linger() {
  if (closed_ || write_failed_) co_return;
  discarding_ = true;
  input_ = {};
  start_shutdown();
  read_ahead();
  co_await until(Clock::now() + kLinger, [this] { return (shut_down_ && ended_) || closed_; });
}

void Connection::on_shutdown(IoError) {
  shut_down_ = true;
  notify();
}

void Connection::close() {
  if (closed_) return;
  closed_ = true;
  close_socket();
  notify();
}

}  // namespace vitrine
