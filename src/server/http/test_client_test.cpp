#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

#include "server/http/head.h"
#include "server/http/test_client.h"

namespace vitrine {

using std::chrono::steady_clock;

std::string Response::header(const std::string& name) const {
  auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

Client::Client(int port, int receive_buffer) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_buffer > 0)
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  int one = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  timeval limit{5, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return;
  ::close(socket_);
  socket_ = -1;
}

Client::~Client() {
  if (socket_ >= 0) ::close(socket_);
}

bool Client::send(std::string_view data) {
  while (!data.empty()) {
    ssize_t n = ::send(socket_, data.data(), data.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    data.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

std::string Client::receive(std::size_t size, std::chrono::milliseconds timeout) {
  pollfd ready{socket_, POLLIN, 0};
  if (::poll(&ready, 1, static_cast<int>(timeout.count())) != 1) return {};
  std::string out(size, '\0');
  ssize_t n = ::recv(socket_, out.data(), size, 0);
  out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return out;
}

bool Client::fill(steady_clock::time_point deadline) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
  if (left.count() <= 0) return false;
  std::string data = receive(64 << 10, left);
  buffer_ += data;
  return !data.empty();
}

bool Client::receive_until(std::string_view text) {
  auto deadline = steady_clock::now() + kPatience;
  while (buffer_.find(text) == buffer_.npos)
    if (!fill(deadline)) return false;
  return true;
}

Response Client::response(bool head) {
  Response out;
  auto deadline = steady_clock::now() + kPatience;
  if (!receive_until("\r\n\r\n")) return out;
  auto end = buffer_.find("\r\n\r\n");
  std::string text = buffer_.substr(0, end + 2);
  buffer_.erase(0, end + 4);
  if (!text.starts_with("HTTP/1.1 ")) return out;
  out.status = std::stoi(text.substr(9, 3));
  for (auto at = text.find("\r\n") + 2; at < text.size();) {
    auto stop = text.find("\r\n", at), colon = text.find(": ", at);
    out.headers[to_lower(text.substr(at, colon - at))] = text.substr(colon + 2, stop - colon - 2);
    at = stop + 2;
  }
  if (head || out.status == 204 || out.status == 100) {
    out.complete = true;
    return out;
  }
  if (out.headers.contains("content-length")) {
    auto size = std::stoul(out.header("content-length"));
    while (buffer_.size() < size && fill(deadline)) {
    }
    out.complete = buffer_.size() >= size;
    out.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return out;
  }
  bool chunked = out.header("transfer-encoding") == "chunked";
  for (std::size_t at = 0; chunked;) {
    auto line = buffer_.find("\r\n", at);
    std::size_t size = line == buffer_.npos ? 0 : std::stoul(buffer_.substr(at), nullptr, 16);
    if (line == buffer_.npos || buffer_.size() < line + 4 + size) {
      if (!fill(deadline)) return out;
      continue;
    }
    out.body += buffer_.substr(line + 2, size);
    at = line + 4 + size;
    if (size > 0) continue;
    buffer_.erase(0, at);
    out.complete = true;
    return out;
  }
  while (fill(deadline)) {
  }
  out.body = std::exchange(buffer_, {});
  return out;
}

bool Client::ends() {
  auto deadline = steady_clock::now() + kPatience;
  while (fill(deadline)) {
  }
  return steady_clock::now() < deadline;
}

void Client::finish() { ::shutdown(socket_, SHUT_WR); }

void Client::reset() {
  linger hard{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  ::close(socket_);
  socket_ = -1;
}

RunningServer::RunningServer(HttpOptions options, std::vector<Route> routes) {
  auto made = HttpServer::create(std::move(options), {std::move(routes)});
  if (!made.ok()) throw std::runtime_error(made.error().message);
  server_ = std::move(*made);
  thread_ = std::thread([this] { EXPECT_TRUE(server_->run().ok()); });
}

void RunningServer::join() {
  if (thread_.joinable()) thread_.join();
}

RunningServer::~RunningServer() {
  server_->stop();
  join();
}

std::string get(std::string_view path, std::string_view more) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", path, more);
}

std::string post(std::string_view path, std::string_view body, std::string_view more) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{}\r\n{}", path,
                     body.size(), more, body);
}

Response ask(int port, std::string_view request) {
  Client client(port);
  client.send(request);
  return client.response(request.starts_with("HEAD "));
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

int threads() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    ++count;
  return count;
}

}  // namespace vitrine
