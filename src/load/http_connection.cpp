#include "load/http_connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/write.hpp>
#include <chrono>

namespace vitrine::load {

HttpConnection::HttpConnection(asio::io_context& io, const Endpoints& endpoints,
                               HttpHandler& handler)
    : io_(io), endpoints_(endpoints), handler_(handler), socket_(io), timer_(io) {}

void HttpConnection::send(std::string request, double timeout_s) {
  request_ = std::move(request);
  parser_ = {};
  active_ = true;
  heard_ = false;
  timer_.expires_after(std::chrono::microseconds(static_cast<std::int64_t>(1e6 * timeout_s)));
  timer_.async_wait([this](ErrorCode) {
    bool due = active_ && timer_.expiry() <= std::chrono::steady_clock::now();
    if (due) end(HttpEnd::kTimeout, "no answer within the timeout");
  });
  reused_ = socket_.is_open();
  if (reused_)
    write();
  else
    connect();
}

void HttpConnection::connect() {
  reused_ = false;
  asio::async_connect(socket_, endpoints_,
                      [this, round = ++round_](ErrorCode error, const asio::ip::tcp::endpoint&) {
                        if (round != round_) return;
                        if (error) return end(HttpEnd::kConnect, error.message());
                        socket_.set_option(asio::ip::tcp::no_delay(true), error);
                        write();
                      });
}

void HttpConnection::write() {
  asio::async_write(socket_, asio::buffer(request_),
                    [this, round = round_](ErrorCode, std::size_t) {
                      // A server may answer and close before it has read everything: whether the
                      // write failed or not, the answer decides.
                      if (round == round_) read();
                    });
}

void HttpConnection::read() {
  socket_.async_read_some(asio::buffer(buffer_),
                          [this, round = round_](ErrorCode error, std::size_t count) {
                            if (round == round_) on_read(error, count);
                          });
}

void HttpConnection::on_read(ErrorCode error, std::size_t count) {
  if (error) return on_closed(error);
  heard_ = true;
  body_.clear();
  bool http = parser_.feed({buffer_.data(), count}, body_);
  if (!body_.empty()) handler_.on_body(parser_.status(), body_);
  if (!http) return end(HttpEnd::kBroken, "the answer is not HTTP");
  if (parser_.done()) return end(HttpEnd::kWhole, "");
  read();
}

void HttpConnection::on_closed(ErrorCode error) {
  if (reused_ && !heard_) {  // closed while it was idle: no answer was begun, so ask again
    drop();
    connect();
    return;
  }
  if (error == asio::error::eof && parser_.close()) return end(HttpEnd::kWhole, "");
  end(HttpEnd::kBroken, "the connection ended in the middle: " + error.message());
}

void HttpConnection::end(HttpEnd end, std::string error) {
  active_ = false;
  timer_.cancel();
  int status = parser_.status();
  if (end != HttpEnd::kWhole || !parser_.keep_alive()) drop();
  handler_.on_end(end, status, error);
}

void HttpConnection::drop() {
  ++round_;
  ErrorCode ignored;
  socket_.close(ignored);
}

}  // namespace vitrine::load
