// One keep-alive HTTP/1.1 connection of the client, on the thread that runs the io_context.
// Includes Asio: for the client's own sources only.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>
#include <string_view>

#include "load/http_parser.h"

namespace vitrine::load {

namespace asio = boost::asio;
using Endpoints = asio::ip::tcp::resolver::results_type;

enum class HttpEnd { kWhole, kBroken, kConnect, kTimeout };

// The sender of a request. Both calls come from the io_context's thread, never from within send().
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void on_body(int status, std::string_view bytes) = 0;
  // The last call about a request; another may be sent from it.
  virtual void on_end(HttpEnd end, int status, const std::string& error) = 0;
};

class HttpConnection {
 public:
  // All three must outlive the connection, and the connection must outlive the io_context's run().
  HttpConnection(asio::io_context& io, const Endpoints& endpoints, HttpHandler& handler);
  // Sends a whole request, over a new connection if need be. One at a time.
  void send(std::string request, double timeout_s);

 private:
  using ErrorCode = boost::system::error_code;
  void connect();
  void write();
  void read();
  void on_read(ErrorCode error, std::size_t count);
  void on_closed(ErrorCode error);
  void end(HttpEnd end, std::string error);
  void drop();

  asio::io_context& io_;
  const Endpoints& endpoints_;
  HttpHandler& handler_;
  asio::ip::tcp::socket socket_;
  asio::steady_timer timer_;
  ResponseParser parser_;
  std::string request_, body_;
  std::array<char, 8192> buffer_;
  bool active_ = false;  // a request is on its way
  bool reused_ = false;  // the connection answered one before
  bool heard_ = false;   // a byte of this answer has come
  int round_ = 0;        // connections so far; callbacks of older ones are ignored
};

}  // namespace vitrine::load
