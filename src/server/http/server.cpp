#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "base/log.h"
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
  void run() override;
  void stop_accepting() override;
  void stop() override;

 private:
  Status listen();
  void accept();
  void accepted(tcp::socket socket);
  void start(tcp::socket socket, bool refuse);
  void ended(Connection* connection, bool refuse);
  void await_wakes();
  void drain();
  void finish_when_idle();
  void run_io();
  void run_worker();

  // io_ is destroyed before what is above it: its coroutines refer to that.
  ServerCore core_;
  std::optional<asio::ssl::context> tls_;
  std::mutex mutex_;  // connections_
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections_;
  int refusing_ = 0;  // on control_
  int port_ = 0;
  asio::io_context io_;
  asio::strand<asio::io_context::executor_type> control_;  // for what follows
  tcp::acceptor acceptor_;
  asio::steady_timer accept_timer_, stop_timer_;
  asio::posix::stream_descriptor wake_;
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
  VT_RETURN_IF_ERROR(positive("connection limit", options.max_connections));
  if (core_.wakes->descriptor() < 0)
    return make_error(ErrorCode::kUnavailable, "server: no eventfd to be had");
  if (!options.api_keys_file.empty()) {
    VT_TRY(core_.keys, ApiKeys::load(options.api_keys_file));
  }
  if (options.tls_certificate.empty() != options.tls_key.empty())
    return make_error(ErrorCode::kInvalid, "TLS needs both a certificate and a key");
  if (!options.tls_certificate.empty()) {
    VT_RETURN_IF_ERROR(make_tls_context(options.tls_certificate, options.tls_key, tls_));
  }
  return listen();
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
  return {core_.connections, core_.accepted, core_.refused, core_.requests, core_.body_bytes};
}

void Server::accept() {
  if (core_.draining) return;
  acceptor_.async_accept(asio::make_strand(io_), [this](IoError error, tcp::socket socket) {
    if (error == asio::error::operation_aborted || core_.draining) return;
    if (!error) {
      accepted(std::move(socket));
      return accept();
    }
    if (error == asio::error::connection_aborted) return accept();
    // Out of descriptors or memory: try again when other connections may have ended.
    LogLine(LogLevel::kError, "cannot accept").field("what", error.message());
    accept_timer_.expires_after(kAcceptRetry);
    accept_timer_.async_wait([this](IoError cancelled) {
      if (!cancelled) accept();
    });
  });
}

void Server::accepted(tcp::socket socket) {
  ++core_.accepted;
  bool refuse = core_.connections >= core_.options.max_connections;
  if (refuse) {
    ++core_.refused;
    if (refusing_ >= kMaxRefusing) return;
    ++refusing_;
  } else {
    ++core_.connections;
  }
  try {
    start(std::move(socket), refuse);
  } catch (const std::exception& error) {
    LogLine(LogLevel::kError, "cannot start a connection").field("what", error.what());
    ended(nullptr, refuse);
  }
}

void Server::start(tcp::socket socket, bool refuse) {
  tune(socket);
  auto strand = socket.get_executor();
  std::shared_ptr<Connection> connection;
  if (tls_)
    connection =
        std::make_shared<StreamConnection<TlsStream>>(core_, strand, std::move(socket), *tls_);
  else
    connection = std::make_shared<StreamConnection<TcpStream>>(core_, strand, std::move(socket));
  {
    std::lock_guard lock(mutex_);
    connections_.emplace(connection.get(), connection);
  }
  auto finished = [this, connection, refuse](std::exception_ptr error) {
    if (error) {
      LogLine(LogLevel::kError, "connection failed");
      connection->close();
    }
    asio::post(control_, [this, connection, refuse] { ended(connection.get(), refuse); });
  };
  asio::co_spawn(strand, serve(connection, refuse), std::move(finished));
  // stop() may have gone through the list just before.
  if (core_.stopping) connection->poke();
}

void Server::ended(Connection* connection, bool refuse) {
  {
    std::lock_guard lock(mutex_);
    connections_.erase(connection);
  }
  if (refuse)
    --refusing_;
  else
    --core_.connections;
  finish_when_idle();
}

// With the acceptor, the timers and the hub quiet, io_ runs out of work and run() returns.
void Server::finish_when_idle() {
  if (!core_.draining || core_.connections > 0 || refusing_ > 0) return;
  stop_timer_.cancel();
  IoError ignored;
  if (wake_.is_open()) wake_.cancel(ignored);
}

void Server::await_wakes() {
  wake_.async_wait(asio::posix::stream_descriptor::wait_read, [this](IoError error) {
    if (error) return;
    core_.wakes->drain();
    await_wakes();
    finish_when_idle();  // its cancel() does not reach a wait that has already ended
  });
}

void Server::drain() {
  IoError ignored;
  acceptor_.close(ignored);
  accept_timer_.cancel();
  std::lock_guard lock(mutex_);
  for (auto& [_, weak] : connections_)
    if (auto connection = weak.lock()) connection->poke();
}

void Server::stop_accepting() {
  core_.draining = true;
  asio::post(control_, [this] {
    drain();
    finish_when_idle();
  });
}

void Server::stop() {
  core_.draining = true;
  core_.stopping = true;
  asio::post(control_, [this] {
    drain();
    stop_timer_.expires_after(kStopGrace);
    stop_timer_.async_wait([this](IoError cancelled) {
      if (cancelled) return;
      LogLine(LogLevel::kError, "handlers did not end in time; leaving them");
      io_.stop();
    });
    finish_when_idle();
  });
}

void Server::run_io() {
  for (;;) {
    try {
      io_.run();
      return;
    } catch (const std::exception& error) {
      LogLine(LogLevel::kError, "I/O handler failed").field("what", error.what());
    }
  }
}

// Jobs catch their own exceptions. A thread's nice value is its own on Linux.
void Server::run_worker() {
  auto id = static_cast<id_t>(::syscall(SYS_gettid));
  (void)::setpriority(PRIO_PROCESS, id, kWorkerNice);
  core_.workers.run();
}

void Server::run() {
  // Posted before the threads start: run() returns at once when there is no work.
  asio::post(control_, [this] {
    wake_.assign(core_.wakes->descriptor());
    await_wakes();
    accept();
    finish_when_idle();
  });
  auto guard = asio::make_work_guard(core_.workers);
  std::vector<std::thread> workers, io;
  try {
    for (int i = 0; i < core_.options.worker_threads; ++i)
      workers.emplace_back([this] { run_worker(); });
    for (int i = 1; i < core_.options.io_threads; ++i) io.emplace_back([this] { run_io(); });
  } catch (const std::system_error& error) {
    LogLine(LogLevel::kError, "cannot start all threads").field("what", error.what());
  }
  if (!workers.empty()) run_io();
  for (auto& thread : io) thread.join();
  guard.reset();
  for (auto& thread : workers) thread.join();
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
