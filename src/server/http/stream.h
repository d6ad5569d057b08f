// The streams under a Connection: TCP, and TLS over it.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <type_traits>

#include "server/http/connection.h"

namespace vitrine {

using TcpStream = asio::ip::tcp::socket;
using TlsStream = asio::ssl::stream<asio::ip::tcp::socket>;

template <typename Stream>
class StreamConnection final : public Connection {
 public:
  template <typename... Args>
  StreamConnection(ServerCore& core, asio::any_io_executor strand, Args&&... args)
      : Connection(core, strand), stream_(std::forward<Args>(args)...) {}

 private:
  static constexpr bool kTls = !std::is_same_v<Stream, TcpStream>;

  void start_handshake() override {
    if constexpr (kTls)
      stream_.async_handshake(
          asio::ssl::stream_base::server,
          [this, self = shared_from_this()](IoError error) { on_handshake(error); });
    else
      on_handshake({});
  }
  void start_read(std::span<char> into) override {
    stream_.async_read_some(
        asio::buffer(into.data(), into.size()),
        [this, self = shared_from_this()](IoError error, std::size_t n) { on_read(error, n); });
  }
  void start_write(std::string_view data) override {
    stream_.async_write_some(
        asio::buffer(data.data(), data.size()),
        [this, self = shared_from_this()](IoError error, std::size_t n) { on_write(error, n); });
  }
  // TLS sends close_notify first; the pending read receives the client's.
  void start_shutdown() override {
    if constexpr (kTls) {
      stream_.async_shutdown(
          [this, self = shared_from_this()](IoError error) { on_shutdown(error); });
    } else {
      IoError error;
      stream_.shutdown(TcpStream::shutdown_send, error);
      on_shutdown(error);
    }
  }
  void close_socket() override {
    IoError ignored;
    stream_.lowest_layer().close(ignored);
  }
  int descriptor() override { return stream_.lowest_layer().native_handle(); }

  Stream stream_;
};

}  // namespace vitrine
