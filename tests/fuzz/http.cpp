// Bytes on a socket: a whole server answers whatever they are, and closes.
#include <sys/socket.h>

#include <charconv>
#include <thread>

#include "base/log.h"
#include "fuzz/fuzz.h"
#include "server/http/test_routes.h"

using namespace vitrine;

namespace {

class Server {
 public:
  Server() {
    set_log_level(LogLevel::kError);
    HttpOptions options = http_testing::options();
    options.io_threads = options.worker_threads = 1;
    options.max_body_bytes = 4096, options.max_header_bytes = 2048, options.max_headers = 20;
    options.cors_origins = {"http://page.example"};
    std::vector<Route> routes = http_testing::routes();
    std::erase_if(routes, [](const Route& r) { return r.path.find("fail") != r.path.npos; });
    auto made = HttpServer::create(options, {.routes = std::move(routes)});
    VT_CHECK(made.ok());
    server_ = std::move(*made);
    thread_ = std::thread([this] { (void)server_->run(); });
  }
  ~Server() {
    server_->stop();
    thread_.join();
  }
  int port() const { return server_->port(); }

 private:
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

// Nothing that was sent is a line of an answer's head; in a body it may be (/echo).
void check_heads(std::string_view answers) {
  constexpr std::string_view kLength = "\r\nContent-Length: ";
  while (!answers.empty()) {
    const std::string_view head = answers.substr(0, answers.find("\r\n\r\n"));
    VT_CHECK(head.find("\r\nx-injected") == head.npos, "{}", answers);
    const std::size_t at = head.find(kLength);
    if (at == head.npos) return;  // a stream, which is the last
    std::size_t length = 0;
    const std::string_view digits = head.substr(at + kLength.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), length);
    answers.remove_prefix(std::min(head.size() + 4 + length, answers.size()));
  }
}

}  // namespace

void fuzz_one(fuzz::Input input) {
  static Server server;
  const std::uint8_t choice = input.take();
  std::string_view text = input.text();
  Client client(server.port());
  if (!client.connected()) return;  // no port is free
  // In one piece or in two.
  if (choice != 0) {
    std::size_t first = text.size() * choice / 256;
    (void)client.send(text.substr(0, first));
    text.remove_prefix(first);
  }
  (void)client.send(text);
  client.finish();
  VT_CHECK(client.ends(), "the server does not close");
  std::string_view answer = client.rest();
  VT_CHECK(answer.empty() || answer.starts_with("HTTP/1.1 "), "{}", answer);
  check_heads(answer);
}
