#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "base/log.h"
#include "base/memory_reserve.h"
#include "server/http/address_seats.h"
#include "server/http/session.h"
#include "server/http/stream.h"
#include "server/http/tls.h"

namespace vitrine {
namespace {

using asio::ip::tcp;
using IoError = boost::system::error_code;

// Connections over the limit that get a 503; further ones are closed without an answer.
constexpr int kMaxRefusing = 64;
// Limits what the kernel buffers for a slow reader (about twice this), so that back-pressure
// reaches the engine soon.
constexpr int kSendBuffer = 128 << 10;
constexpr auto kAcceptRetry = std::chrono::milliseconds(100);
// How long stop() waits for handlers to notice.
constexpr auto kStopGrace = std::chrono::seconds(2);
constexpr int kWorkerNice = 10;

template <int kLevel, int kName>
using IntOption = asio::detail::socket_option::integer<kLevel, kName>;

void tune(tcp::socket& socket) {
  IoError ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::send_buffer_size(kSendBuffer), ignored);
  // Detects a client that vanished without closing, while we wait for the engine.
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  socket.set_option(IntOption<IPPROTO_TCP, TCP_KEEPIDLE>(60), ignored);
  socket.set_option(IntOption<IPPROTO_TCP, TCP_KEEPINTVL>(15), ignored);
  socket.set_option(IntOption<IPPROTO_TCP, TCP_KEEPCNT>(4), ignored);
}

class Server final : public HttpServer {
 public:
  Server(HttpOptions options, HttpService service)
      : control_(asio::make_strand(io_)),
        acceptor_(control_),
        accept_timer_(control_),
        stop_timer_(control_),
        wake_(control_) {
    core_.options = std::move(options);
    core_.service = std::move(service);
  }
  ~Server() override {
    core_.wakes->close();
    if (wake_.is_open()) wake_.release();
  }

  Status open();
  int port() const override { return port_; }
  HttpCounts counts() const override;
  Status run() override;
  void stop_accepting() override;
  void stop() override;
  void reload() override;

 private:
  Status load_keys();
  Status load_tls();
  Status listen();
  void accept();
  void accepted(tcp::socket socket);
  struct Place;
  void start(tcp::socket socket, std::unique_ptr<Place> place);
  void await_wakes();
  void resume();
  void drain();
  void finish_when_idle();
  void run_io();
  void run_worker();

  // io_ is destroyed before what is above it: its coroutines refer to that.
  ServerCore core_;
  Swappable<asio::ssl::context> tls_;  // null: no TLS
  std::mutex mutex_;                   // connections_
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections_;
  AddressSeats seats_;
  std::atomic<int> refusing_ = 0;
  int port_ = 0;
  asio::io_context io_;
  asio::strand<asio::io_context::executor_type> control_;  // for what follows
  tcp::acceptor acceptor_;
  asio::steady_timer accept_timer_, stop_timer_;
  asio::posix::stream_descriptor wake_;
  bool accepting_ = false, awaiting_ = false;  // the operation is under way
};

// A connection among those that are open, or that are being refused. It ends with the session,
// also with one that is dropped.
struct Server::Place {
  Place(Server& server, bool refuse, AddressSeats::Seat seat)
      : server(server), refuse(refuse), seat(std::move(seat)) {
    ++count();
  }
  ~Place() {
    if (connection != nullptr) {
      std::lock_guard lock(server.mutex_);
      server.connections_.erase(connection);
    }
    --count();
    if (server.core_.draining) server.core_.wakes->nudge();  // for finish_when_idle()
  }
  Place(const Place&) = delete;
  std::atomic<int>& count() { return refuse ? server.refusing_ : server.core_.connections; }

  Server& server;
  const bool refuse;
  const AddressSeats::Seat seat;
  Connection* connection = nullptr;
};

Status Server::open() {
  const auto& options = core_.options;
  auto positive = [](const char* name, std::int64_t value) -> Status {
    if (value >= 1) return Ok{};
    return make_error(ErrorCode::kInvalid, "{} is {}: at least 1 is needed", name, value);
  };
  VT_RETURN_IF_ERROR(positive("I/O threads", options.io_threads));
  VT_RETURN_IF_ERROR(positive("worker threads", options.worker_threads));
  VT_RETURN_IF_ERROR(positive("body limit", options.max_body_bytes));
  VT_RETURN_IF_ERROR(positive("header limit", options.max_header_bytes));
  VT_RETURN_IF_ERROR(positive("limit of header fields", options.max_headers));
  VT_RETURN_IF_ERROR(positive("connection limit", options.max_connections));
  VT_RETURN_IF_ERROR(
      positive("connection limit of an address", options.max_connections_per_address));
  VT_RETURN_IF_ERROR(positive("least rate of a body", options.min_body_rate));
  if (core_.wakes->descriptor() < 0)
    return make_error(ErrorCode::kUnavailable, "server: no eventfd to be had");
  VT_RETURN_IF_ERROR(load_keys());
  VT_RETURN_IF_ERROR(load_tls());
  return listen();
}

Status Server::load_keys() {
  auto keys = std::make_shared<ApiKeys>();
  if (!core_.options.api_keys_file.empty()) {
    VT_TRY(*keys, ApiKeys::load(core_.options.api_keys_file));
  }
  core_.keys.set(std::move(keys));
  return Ok{};
}

Status Server::load_tls() {
  const auto& options = core_.options;
  if (options.tls_certificate.empty() != options.tls_key.empty())
    return make_error(ErrorCode::kInvalid, "TLS needs both a certificate and a key");
  if (options.tls_certificate.empty()) return Ok{};
  VT_TRY(auto context, make_tls_context(options.tls_certificate, options.tls_key));
  tls_.set(std::move(context));
  return Ok{};
}

void Server::reload() {
  auto attempt = [this](const std::string& file, Status (Server::*load)()) {
    if (file.empty()) return;
    std::string failure;
    try {
      if (Status status = (this->*load)(); !status.ok()) failure = status.error().message;
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (failure.empty())
      LogLine(LogLevel::kInfo, "reloaded").field("file", file);
    else
      LogLine(LogLevel::kError, "cannot reload; what was loaded before stays")
          .field("file", file)
          .field("what", failure);
  };
  attempt(core_.options.api_keys_file, &Server::load_keys);
  attempt(core_.options.tls_certificate, &Server::load_tls);
}

Status Server::listen() {
  const auto& options = core_.options;
  if (options.port < 0 || options.port > 65535)
    return make_error(ErrorCode::kInvalid, "port {}: expected 0 to 65535", options.port);
  IoError error;
  tcp::resolver resolver(io_);
  auto found = resolver.resolve(options.host, std::to_string(options.port),
                                tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty())
    return make_error(ErrorCode::kInvalid, "cannot listen on '{}': {}", options.host,
                      error.message());
  tcp::endpoint endpoint = *found.begin();
  auto attempt = [&](auto&& step) {
    if (!error) step();
  };
  attempt([&] { acceptor_.open(endpoint.protocol(), error); });
  attempt([&] { acceptor_.set_option(tcp::acceptor::reuse_address(true), error); });
  attempt([&] { acceptor_.bind(endpoint, error); });
  attempt([&] { acceptor_.listen(4096, error); });
  attempt([&] { endpoint = acceptor_.local_endpoint(error); });
  if (error)
    return make_error(ErrorCode::kUnavailable, "cannot listen on {} port {}: {}", options.host,
                      options.port, error.message());
  port_ = endpoint.port();
  VT_TRY(core_.access, AccessRules::make(options, endpoint.address().to_string()));
  return Ok{};
}

HttpCounts Server::counts() const {
  return {core_.connections,         core_.accepted, core_.refused,
          core_.refused_by_address,  core_.requests, core_.body_bytes.total(),
          core_.answer_bytes.total()};
}

void Server::accept() {
  if (core_.draining || accepting_) return;
  acceptor_.async_accept(asio::make_strand(io_), [this](IoError error, tcp::socket socket) {
    accepting_ = false;
    // One that came just as draining began is told so.
    if (!error) {
      accepted(std::move(socket));
      return accept();
    }
    if (error == asio::error::operation_aborted || core_.draining) return;
    if (error == asio::error::connection_aborted) return accept();
    // Out of descriptors or memory: try again when other connections may have ended.
    LogLine(LogLevel::kError, "cannot accept").field("what", error.message());
    accept_timer_.expires_after(kAcceptRetry);
    accept_timer_.async_wait([this](IoError cancelled) {
      accepting_ = false;
      if (!cancelled) accept();
    });
    accepting_ = true;
  });
  accepting_ = true;
}

void Server::accepted(tcp::socket socket) {
  ++core_.accepted;
  IoError gone;
  auto seat = seats_.take(socket.remote_endpoint(gone).address(),
                          core_.options.max_connections_per_address);
  if (!seat) ++core_.refused_by_address;
  bool refuse = !seat || core_.connections >= core_.options.max_connections;
  if (refuse && (++core_.refused, refusing_ >= kMaxRefusing)) return;
  try {
    start(std::move(socket), std::make_unique<Place>(*this, refuse, std::move(seat)));
  } catch (const std::exception& error) {
    LogLine(LogLevel::kError, "cannot start a connection").field("what", error.what());
  }
}

void Server::start(tcp::socket socket, std::unique_ptr<Place> place) {
  const bool refuse = place->refuse;
  tune(socket);
  auto strand = socket.get_executor();
  std::shared_ptr<Connection> connection;
  // A connection keeps what it needs of the context.
  if (auto tls = tls_.get())
    connection =
        std::make_shared<StreamConnection<TlsStream>>(core_, strand, std::move(socket), *tls);
  else
    connection = std::make_shared<StreamConnection<TcpStream>>(core_, strand, std::move(socket));
  {
    std::lock_guard lock(mutex_);
    connections_.emplace(connection.get(), connection);
    place->connection = connection.get();
  }
  auto finished = [connection, place = std::move(place)](std::exception_ptr error) {
    if (error) {
      LogLine(LogLevel::kError, "connection failed");
      connection->close();
    }
  };
  asio::co_spawn(strand, serve(connection, refuse), std::move(finished));
  // stop() may have gone through the list just before.
  if (core_.stopping) connection->poke();
}

// With the acceptor, the timers and the hub quiet, io_ runs out of work and run() returns.
void Server::finish_when_idle() {
  if (!core_.draining || core_.connections > 0 || refusing_ > 0) return;
  stop_timer_.cancel();
  IoError ignored;
  if (wake_.is_open()) wake_.cancel(ignored);
}

void Server::await_wakes() {
  if (awaiting_) return;
  wake_.async_wait(asio::posix::stream_descriptor::wait_read, [this](IoError error) {
    awaiting_ = false;
    if (error) return;
    core_.wakes->drain();
    await_wakes();
    finish_when_idle();  // its cancel() does not reach a wait that has already ended
  });
  awaiting_ = true;
}

// Starts what is not under way: at first, and after an exception in a handler, which may have been
// the one to start it again.
void Server::resume() {
  await_wakes();
  accept();
  finish_when_idle();
}

void Server::drain() {
  IoError ignored, none_left;
  // Who is connected, but not accepted yet, is told; closing the acceptor would reset them.
  acceptor_.non_blocking(true, ignored);
  while (acceptor_.is_open() && !core_.stopping) {
    tcp::socket socket = acceptor_.accept(asio::make_strand(io_), none_left);
    if (none_left) break;
    accepted(std::move(socket));
  }
  acceptor_.close(ignored);
  accept_timer_.cancel();
  std::lock_guard lock(mutex_);
  for (auto& [_, weak] : connections_)
    if (auto connection = weak.lock()) insist([&] { connection->poke(); });
}

void Server::stop_accepting() {
  core_.draining = true;
  auto leave = [this] {
    drain();
    finish_when_idle();
  };
  insist([&] { asio::post(control_, leave); });
}

void Server::stop() {
  core_.draining = true;
  if (core_.stopping.exchange(true)) return;
  auto leave = [this] {
    drain();
    stop_timer_.expires_after(kStopGrace);
    stop_timer_.async_wait([this](IoError cancelled) {
      if (cancelled) return;
      LogLine(LogLevel::kError, "handlers did not end in time; leaving them");
      io_.stop();
    });
    finish_when_idle();
  };
  insist([&] { asio::post(control_, leave); });
}

void Server::run_io() {
  UseMemoryReserve reserve;
  for (;;) {
    try {
      io_.run();
      return;
    } catch (const std::exception& error) {
      LogLine(LogLevel::kError, "I/O handler failed").field("what", error.what());
    }
    insist([this] { asio::post(control_, [this] { resume(); }); });
  }
}

// Jobs catch their own exceptions. A thread's nice value is its own on Linux.
void Server::run_worker() {
  auto id = static_cast<id_t>(::syscall(SYS_gettid));
  (void)::setpriority(PRIO_PROCESS, id, kWorkerNice);
  core_.workers.run();
}

Status Server::run() {
  fill_memory_reserve();
  // Posted before the threads start: run() returns at once when there is no work.
  asio::post(control_, [this] {
    wake_.assign(core_.wakes->descriptor());
    resume();
  });
  core_.workers.set_threads(core_.options.worker_threads);
  std::vector<std::thread> workers, io;
  Status status = Ok{};
  try {
    for (int i = 0; i < core_.options.worker_threads; ++i)
      workers.emplace_back([this] { run_worker(); });
    for (int i = 1; i < core_.options.io_threads; ++i) io.emplace_back([this] { run_io(); });
  } catch (const std::exception& error) {
    status = make_error(ErrorCode::kUnavailable, "cannot start {} worker and {} I/O threads: {}",
                        core_.options.worker_threads, core_.options.io_threads, error.what());
    stop();
  }
  run_io();
  for (auto& thread : io) thread.join();
  core_.workers.close();
  for (auto& thread : workers) thread.join();
  return status;
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::create(HttpOptions options, HttpService service) {
  try {
    auto server = std::make_unique<Server>(std::move(options), std::move(service));
    VT_RETURN_IF_ERROR(server->open());
    return std::unique_ptr<HttpServer>(std::move(server));
  } catch (const std::exception& error) {
    return make_error(ErrorCode::kUnavailable, "server: {}", error.what());
  }
}

}  // namespace vitrine
