// HTTP/1.1 over Boost.Asio and Beast: sockets, limits, TLS, keys, keep-alive, disconnects.
// Knows nothing of models and of the API it carries. A connection is one coroutine on the I/O
// threads; a route's handler runs in it and hands what takes longer than a millisecond to the
// workers.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/written.h"

namespace vitrine {

namespace asio = boost::asio;

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: any free one
  int io_threads = 1;
  int worker_threads = 2;
  std::string tls_certificate, tls_key;   // PEM files; both or neither
  std::string api_keys_file;              // see ApiKeys; none: no keys are asked for
  std::vector<std::string> allow_hosts;   // beside loopback names and the bound address
  std::vector<std::string> cors_origins;  // that may read answers in a browser; "*": any
  std::int64_t max_body_bytes = 16 << 20;
  std::int64_t max_bodies_bytes = 512 << 20;   // of all requests in work; over it: 503
  std::int64_t max_answers_bytes = 512 << 20;  // of all answers that are not sent yet; over it: 503
  int max_header_bytes = 64 << 10;
  int max_headers = 100;
  int max_connections = 4096;
  int max_connections_per_address = 2048;   // an IPv6 client is its /64
  std::chrono::seconds header_timeout{10};  // a request's head, from its first byte
  // Without a byte of the body, and beyond it no slower than that many bytes a second on average:
  // n bytes have body_timeout + n / min_body_rate.
  std::chrono::seconds body_timeout{30};
  int min_body_rate = 16 << 10;
  std::chrono::seconds idle_timeout{75};   // between two requests
  std::chrono::seconds write_timeout{60};  // without the client taking a byte
};

inline constexpr int kMaxKeyPriority = 1000;  // either way; lower runs first

// What an API key allows. Without keys, everything.
struct KeyRights {
  double weight = 1;                                   // its share of the machine
  bool is_operator = true;                             // sees what concerns other keys
  int min_priority = std::numeric_limits<int>::min();  // the best that it may ask for
  // 0: no limit.
  int max_parallel_requests = 0;
  int rpm_limit = 0;           // requests per minute
  std::int64_t tpm_limit = 0;  // tokens per minute, of prompts and answers
};

class KeyUse;  // key_limits.h

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // as it was sent, without the query
  std::string query;
  std::string body;
  std::string id;               // of this request: in the logs and in the x-request-id header
  std::string tenant;           // name of the API key; empty without keys
  KeyRights rights;             // of the API key
  std::shared_ptr<KeyUse> use;  // counts against the key's limits; null: none do
  std::string_view argument;    // what the '*' of the route's path stands for
  // process_ns() of its first byte, of its last, and of when a worker first began with it; 0: not yet.
  std::int64_t received_ns = 0, body_ns = 0, taken_ns = 0;
  std::shared_ptr<const Written> written;                    // its answer; null: nobody notes it
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string_view header(std::string_view name) const;      // empty when absent
};

using Headers = std::vector<std::pair<std::string, std::string>>;

// One request and its answer. Used by its handler only, on the connection's strand, one operation
// at a time.
class Exchange {
 public:
  virtual ~Exchange() = default;
  const HttpRequest& request() const { return request_; }

  // The whole answer at once. A large one is a 503 where all answers would hold too much.
  virtual asio::awaitable<void> reply(int status, std::string_view content_type, std::string body,
                                      Headers headers = {}) = 0;
  // The same of a body that outlives the server: it is sent from where it is.
  virtual asio::awaitable<void> reply_static(int status, std::string_view content_type,
                                             std::string_view body, Headers headers = {}) = 0;
  // An answer in pieces: the head, pieces, the end. send() returns false when the client is gone or
  // takes nothing for write_timeout (the connection is then closed), and for HEAD, which gets no
  // body; it waits while the client is slow. An answer without end() is cut off, so that the client
  // can tell. The request's body is gone once the answer has begun.
  virtual asio::awaitable<void> begin(std::string_view content_type, Headers headers = {}) = 0;
  virtual asio::awaitable<bool> send(std::string piece) = 0;
  virtual asio::awaitable<void> end() = 0;
  // As begin(), of server-sent events.
  asio::awaitable<void> begin_events();

  // Says how many bytes the handler keeps for the answer, beside what it has given to reply() or
  // send(). False, and counted as none, where all answers together would be over max_answers_bytes.
  virtual bool hold(std::int64_t bytes) = 0;

  // Something that any thread may call to end a wait(): cheap, never blocks, allocates nothing, and
  // may outlive the exchange.
  virtual std::function<void()> waker() = 0;
  // Until the waker was called since the last wait(), or the client is gone (then false).
  virtual asio::awaitable<bool> wait() = 0;
  // The same, but no longer than that.
  virtual asio::awaitable<bool> wait_for(std::chrono::milliseconds most) = 0;
  virtual bool gone() const = 0;

  // Runs f on the workers; the coroutine goes on here with its result.
  template <typename F>
  asio::awaitable<std::invoke_result_t<F>> on_worker(F f) {
    using T = std::invoke_result_t<F>;
    if constexpr (std::is_void_v<T>) {
      co_await run_on_worker(f);
    } else {
      std::optional<T> out;
      co_await run_on_worker([&] { out.emplace(f()); });
      co_return std::move(*out);
    }
  }

 protected:
  virtual asio::awaitable<void> run_on_worker(std::function<void()> f) = 0;
  HttpRequest request_;
};

struct Route {
  std::string method;  // "GET", "POST"
  // Exact; or with a '*': at the end it stands for any rest, within the path for one segment. Of the
  // paths that match, only the most exact ones are looked at: those without '*', then those with one
  // within.
  std::string path;
  std::function<asio::awaitable<void>(Exchange&)> handle;
  bool open = false;  // answers without an API key
};

// What the '*' of a route's path stands for in `path`, empty where there is none; nothing: the path
// does not match.
std::optional<std::string_view> route_argument(std::string_view pattern, std::string_view path);
// The route for a method and a path; null: there is none.
const Route* find_route(const std::vector<Route>& routes, std::string_view method,
                        std::string_view path);
// "GET, HEAD": the methods that find_route() finds for a path.
std::string allowed_methods(const std::vector<Route>& routes, std::string_view path);

// Why the transport itself does not answer as asked: a request that is malformed, over a limit, not
// allowed or not routed, or a handler that failed.
struct HttpError {
  int status = 0;
  std::string message;
  std::string code = {};  // for programs to tell apart what has the same status; may be empty
};

struct HttpBody {
  std::string content_type, text;
};
// "message\n"
HttpBody plain_error(const HttpError& error);
// No room for another answer: answered with a Retry-After.
HttpError too_many_answers();

// What a server serves.
struct HttpService {
  std::vector<Route> routes;
  std::function<HttpBody(const HttpError&)> write_error = plain_error;
};

struct HttpCounts {
  int connections = 0;
  std::uint64_t accepted = 0, refused = 0;  // connections
  std::uint64_t refused_by_address = 0;     // of those, because of their address
  std::uint64_t requests = 0;
  std::int64_t body_bytes = 0;    // held by requests in work
  std::int64_t answer_bytes = 0;  // held by answers that are not sent yet
};

class HttpServer {
 public:
  // Binds and listens; answers start with run().
  static Result<std::unique_ptr<HttpServer>> create(HttpOptions options, HttpService service);
  virtual ~HttpServer() = default;
  virtual int port() const = 0;
  virtual HttpCounts counts() const = 0;
  // Serves until stop_accepting() has been called and everything has been answered, or stop(). An
  // error: it could not begin.
  virtual Status run() = 0;
  // From any thread. No new connections; requests in work are finished, idle connections closed,
  // further requests on the open ones get 503.
  virtual void stop_accepting() = 0;
  // Closes everything now. Work that is on a worker is still waited for by run().
  virtual void stop() = 0;
  // From any thread. Reads the files of API keys and of the certificate again. What is good takes
  // the place of what was there, for requests and connections that begin from now on; the old stays
  // where a file is not good. The log has what came of it.
  virtual void reload() = 0;
};

}  // namespace vitrine
