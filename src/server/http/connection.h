// One connection as bytes: reads ahead, writes with a timeout, notices that the client went away,
// can be woken from other threads. Knows no HTTP; session.cpp does.
//
// Everything runs on the connection's strand but poke() and deliver(). One coroutine, the session,
// waits at a time; the operations of the stream end in callbacks that leave a note and notify it.
// Reads are never cancelled, so no byte is lost: the next one is started when the last has ended.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/swappable.h"
#include "server/http/byte_bound.h"
#include "server/http/http.h"
#include "server/http/key_limits.h"
#include "server/http/security.h"
#include "server/http/wake.h"
#include "server/http/workers.h"

namespace vitrine {

using Clock = std::chrono::steady_clock;

// What all connections of a server share; outlives them.
struct ServerCore {
  HttpOptions options;
  HttpService service;
  Swappable<const ApiKeys> keys;  // replaced by reload()
  KeyLimits limits;
  AccessRules access;
  Workers workers;
  std::shared_ptr<WakeHub> wakes = std::make_shared<WakeHub>();
  std::atomic<bool> draining{false};  // set by stop_accepting() and stop()
  std::atomic<bool> stopping{false};  // set by stop()
  std::atomic<std::uint64_t> accepted{0}, refused{0}, refused_by_address{0}, requests{0};
  std::atomic<int> connections{0};
  ByteBound body_bytes, answer_bytes;
};

class Connection : public Wakeable, public std::enable_shared_from_this<Connection> {
 public:
  Connection(ServerCore& core, asio::any_io_executor strand);

  ServerCore& core() { return core_; }

  // Any thread. Makes the session look at core().draining and core().stopping again.
  void poke();
  // Any thread; from the hub. Counts only while `number` is that of the exchange in work.
  void deliver(std::uint64_t number) override;

  asio::awaitable<bool> handshake();

  // Input: what has been received and not consumed.
  enum class Input { kMore, kEnded, kTimeout };
  std::string_view input() const { return input_; }
  void consume(std::size_t bytes);
  // Until there are more than `have` bytes of input.
  asio::awaitable<Input> more_input(std::size_t have, Clock::time_point deadline);
  // As more_input(0), but ends (kEnded) when the server is being drained.
  asio::awaitable<Input> first_input(Clock::time_point deadline);

  // False when the client is gone or took nothing for write_timeout; the connection is then closed.
  // `tail` follows `data`; its bytes outlive the connection.
  asio::awaitable<bool> write(std::string data, std::string_view tail = {});

  // The client has ended its side, or the connection is closed.
  bool gone() const { return ended_ || closed_; }

  std::uint64_t begin_exchange();
  // Until it is woken, or the client is gone (then false), or the deadline.
  asio::awaitable<bool> wait_woken(Clock::time_point deadline);
  // In the turn of the key that the request has.
  asio::awaitable<void> run_on_worker(const HttpRequest& request, std::function<void()> f);

  // Ends our side, then reads and drops what the client still sends for a moment: closing with
  // unread bytes would reset the connection and could destroy the answer on its way.
  asio::awaitable<void> linger();
  void close();

 protected:
  // Each starts one operation on the stream that ends in the function on_...() of its name.
  virtual void start_handshake() = 0;
  virtual void start_read(std::span<char> into) = 0;
  virtual void start_write(std::string_view data) = 0;
  virtual void start_shutdown() = 0;
  virtual void close_socket() = 0;
  virtual int descriptor() = 0;

  using IoError = boost::system::error_code;
  void on_handshake(IoError error);
  void on_read(IoError error, std::size_t bytes);
  void on_write(IoError error, std::size_t bytes);
  void on_shutdown(IoError error);

 private:
  void read();
  void read_ahead();
  bool read_paused() const { return !reading_ && !gone(); }
  void check_hang_up();
  void notify() { timer_.cancel(); }

  // The session's only way to wait: for `ready`, or the deadline (then false).
  template <typename Ready>
  asio::awaitable<bool> until(Clock::time_point deadline, Ready ready) {
    while (!ready()) {
      if (Clock::now() >= deadline) co_return false;
      timer_.expires_at(deadline);
      co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    co_return true;
  }

  ServerCore& core_;
  const asio::any_io_executor strand_;
  asio::steady_timer timer_;

  std::vector<char> read_buffer_;
  std::string input_, output_;
  std::size_t written_ = 0;
  std::uint64_t exchange_ = 0;
  bool handshaking_ = false, reading_ = false, writing_ = false;
  bool handshake_failed_ = false, write_failed_ = false;
  bool discarding_ = false, shut_down_ = false;
  bool ended_ = false, closed_ = false;
  bool woken_ = false;
};

}  // namespace vitrine
