// For tests: a client of plain blocking sockets, and a server in a thread.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/http/http.h"

namespace vitrine {

// How long a test waits for what must happen. Only a failure takes so long.
inline constexpr std::chrono::seconds kPatience{30};

struct Response {
  int status = 0;                              // 0: the connection ended without an answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // without chunk framing
  bool complete = false;                       // by its length or last chunk
  std::string header(const std::string& name) const;
};

class Client {
 public:
  // `receive_buffer` 0: the system's.
  explicit Client(int port, int receive_buffer = 0);
  ~Client();
  Client(Client&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  Client(const Client&) = delete;

  bool connected() const { return socket_ >= 0; }
  // False when the server would not take all of it.
  bool send(std::string_view data);
  // Up to `size` bytes; empty at the end of the stream or after `timeout`.
  std::string receive(std::size_t size, std::chrono::milliseconds timeout);
  // One answer; HEAD answers have no body. Keeps what follows for the next.
  Response response(bool head = false);
  // Until the text has been received; false when the stream ends before.
  bool receive_until(std::string_view text);
  // Whether the server ends the connection (what it sends meanwhile is kept in rest()).
  bool ends();
  const std::string& rest() const { return buffer_; }
  void finish();  // our side only
  void reset();   // RST
  int descriptor() const { return socket_; }

 private:
  bool fill(std::chrono::steady_clock::time_point deadline);
  int socket_ = -1;
  std::string buffer_;
};

// A server that runs until the object ends.
class RunningServer {
 public:
  RunningServer(HttpOptions options, std::vector<Route> routes);
  ~RunningServer();
  HttpServer* operator->() { return server_.get(); }
  int port() const { return server_->port(); }
  void join();

 private:
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

std::string get(std::string_view path, std::string_view more = {});
std::string post(std::string_view path, std::string_view body, std::string_view more = {});
// One request on a connection of its own.
Response ask(int port, std::string_view request);

int open_descriptors();
int threads();
// Polls until `ready`; false after kPatience.
template <typename F>
bool eventually(F ready) {
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!ready()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace vitrine
