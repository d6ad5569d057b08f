#include "server/http/session.h"

#include <algorithm>
#include <new>
#include <random>

#include "base/log.h"
#include "base/memory_reserve.h"
#include "base/process_clock.h"
#include "base/utf8.h"
#include "server/http/exchange.h"
#include "server/http/head.h"
#include "server/http/parser.h"

namespace vitrine {
namespace {

constexpr std::size_t kMaxId = 64;
constexpr auto kRefuseTimeout = std::chrono::seconds(1);
constexpr const char* kNoMemory = "there is no memory for this request now";

// Why a request is not handed to its route. Status 0: the client is gone; no answer.
struct Refusal {
  HttpError error;
  Headers headers;
};
using Verdict = std::optional<Refusal>;

Refusal refusal(HttpError error, Headers headers = {}) {
  return {std::move(error), std::move(headers)};
}

Refusal client_gone() { return {HttpError{}, {}}; }

Refusal unavailable(std::string message) {
  return refusal({503, std::move(message), "unavailable"}, {{"Retry-After", "1"}});
}

bool sane_id(std::string_view id) {
  return !id.empty() && id.size() <= kMaxId &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

// Random, so that two ids do not tell how many requests came between them.
std::string new_id() {
  std::random_device device;
  return fmt::format("req-{:08x}{:08x}", device(), device());
}

std::string shown(const HttpRequest& request) {
  return fmt::format("{} {}", shortened(request.method), shortened(request.path, 100));
}

bool known_method(std::string_view method) {
  static constexpr std::string_view kMethods[] = {"GET",    "HEAD",    "POST",  "PUT",    "PATCH",
                                                  "DELETE", "OPTIONS", "TRACE", "CONNECT"};
  return std::find(std::begin(kMethods), std::end(kMethods), method) != std::end(kMethods);
}

// The names that a preflight asks for, when they are a list of tokens.
std::string sane_names(std::string_view names) {
  bool sane = names.size() <= 1024 && std::all_of(names.begin(), names.end(), [](char c) {
                return c == ',' || c == ' ' || is_token({&c, 1});
              });
  return sane ? std::string(names) : std::string();
}

class Session {
 public:
  Session(Connection& connection, bool refuse)
      : connection_(connection), core_(connection.core()), refuse_(refuse) {}

  enum class Next { kRequest, kLinger, kClose };
  asio::awaitable<Next> serve_one();

 private:
  asio::awaitable<bool> begins();
  asio::awaitable<Verdict> read_request(ConnectionExchange& exchange, bool begun);
  asio::awaitable<Verdict> read_head(ConnectionExchange& exchange);
  asio::awaitable<Verdict> read_body(ConnectionExchange& exchange);
  asio::awaitable<void> handle(ConnectionExchange& exchange, const Route& route);
  asio::awaitable<void> preflight(ConnectionExchange& exchange);
  Verdict admit(ConnectionExchange& exchange);
  Verdict check_origin(ConnectionExchange& exchange);
  Verdict find_handler(ConnectionExchange& exchange);
  Verdict count_request(HttpRequest& request);

  Connection& connection_;
  ServerCore& core_;
  const bool refuse_;
  bool fresh_ = true;  // no request yet
  // Of the current request.
  std::unique_ptr<RequestParser> parser_;
  const Route* route_ = nullptr;
  bool preflight_ = false;
};

// The first byte of a request; empty lines before it do not count.
asio::awaitable<bool> Session::begins() {
  auto idle =
      refuse_ ? Clock::duration(kRefuseTimeout) : Clock::duration(core_.options.idle_timeout);
  auto deadline = Clock::now() + idle;
  for (;;) {
    auto input = connection_.input();
    std::size_t blank = 0;  // all at once: each consume() moves what is left
    while (input.substr(blank).starts_with("\r\n")) blank += 2;
    if (blank > 0) {
      connection_.consume(blank);
    } else if (!input.empty() && input != "\r") {
      co_return true;
    } else if (input.empty()) {
      auto got = co_await connection_.first_input(deadline);
      // Who has just connected may be about to ask, and is told that it is too late.
      if (got == Connection::Input::kEnded && fresh_ && core_.draining)
        got = co_await connection_.more_input(0, Clock::now() + kRefuseTimeout);
      if (got != Connection::Input::kMore) co_return false;
    } else {
      auto got = co_await connection_.more_input(1, deadline);
      if (got != Connection::Input::kMore) co_return false;
    }
  }
}

asio::awaitable<Session::Next> Session::serve_one() {
  bool begun = co_await begins();
  fresh_ = false;
  if (!begun && !refuse_) co_return Next::kClose;
  fill_memory_reserve();
  ++core_.requests;
  ConnectionExchange exchange(connection_);
  Verdict verdict;
  bool starved = false;
  try {
    verdict = co_await read_request(exchange, begun);
  } catch (const std::bad_alloc&) {
    starved = true;
  }
  exchange.mutable_request().body_ns = process_ns();
  parser_.reset();
  if (starved) {
    verdict = unavailable(kNoMemory);
    exchange.keep_alive = false;
  }
  if (verdict && verdict->error.status == 0) co_return Next::kClose;
  if (verdict)
    co_await exchange.refuse(std::move(verdict->error), std::move(verdict->headers));
  else if (preflight_)
    co_await preflight(exchange);
  else
    co_await handle(exchange, *route_);
  exchange.log();
  co_return exchange.complete() && exchange.keep_alive ? Next::kRequest : Next::kLinger;
}

asio::awaitable<Verdict> Session::read_request(ConnectionExchange& exchange, bool begun) {
  exchange.mutable_request().id = new_id();
  exchange.note_writing();
  parser_ =
      std::make_unique<RequestParser>(core_.options.max_header_bytes, core_.options.max_body_bytes);
  route_ = nullptr;
  preflight_ = false;
  Verdict verdict;
  if (begun) verdict = co_await read_head(exchange);
  if (refuse_ && (!verdict || verdict->error.status != 0)) {
    verdict = unavailable("too many connections are open");
    exchange.keep_alive = false;
  }
  if (!verdict) verdict = admit(exchange);
  if (!verdict && !preflight_) verdict = co_await read_body(exchange);
  co_return verdict;
}

asio::awaitable<Verdict> Session::read_head(ConnectionExchange& exchange) {
  HeadScanner scanner(core_.options.max_header_bytes, core_.options.max_headers);
  auto timeout =
      refuse_ ? Clock::duration(kRefuseTimeout) : Clock::duration(core_.options.header_timeout);
  auto deadline = Clock::now() + timeout;
  std::size_t length = 0;
  while ((length = scanner.scan(connection_.input())) == 0) {
    if (scanner.error()) co_return refusal(*scanner.error());
    auto got = co_await connection_.more_input(connection_.input().size(), deadline);
    if (got == Connection::Input::kEnded) co_return client_gone();
    if (got == Connection::Input::kTimeout)
      co_return refusal({408, "the head of the request did not arrive in time"});
  }
  auto& request = exchange.mutable_request();
  auto problem = parser_->head(connection_.input().substr(0, length), request);
  connection_.consume(length);
  if (auto id = request.header("x-request-id"); sane_id(id)) request.id = std::string(id);
  exchange.http11 = parser_->http11();
  if (problem) co_return refusal(std::move(*problem));
  // A refused request whose body is still to come ends the connection.
  exchange.keep_alive = parser_->keep_alive() && parser_->done();
  co_return std::nullopt;
}

// All that is decided by the head alone, before a byte of the body is kept.
Verdict Session::admit(ConnectionExchange& exchange) {
  const auto& request = exchange.request();
  if (auto verdict = check_origin(exchange)) return verdict;
  if (core_.draining) return unavailable("the server is shutting down");
  if (preflight_) return std::nullopt;
  if (auto verdict = find_handler(exchange)) return verdict;
  auto expect = request.header("expect");
  if (!expect.empty() && !equals_ignoring_case(expect, "100-continue"))
    return refusal({417, "Expect can only be 100-continue"});
  return std::nullopt;
}

Verdict Session::check_origin(ConnectionExchange& exchange) {
  const auto& request = exchange.request();
  auto count = [&](std::string_view name) {
    return std::count_if(request.headers.begin(), request.headers.end(),
                         [&](const auto& header) { return header.first == name; });
  };
  auto hosts = count("host");
  if (hosts > 1 || (hosts == 0 && exchange.http11))
    return refusal({400, "the request must have exactly one Host"});
  auto host = request.header("host");
  if (hosts == 1 && !core_.access.host_allowed(host))
    return refusal(
        {403, "this Host is not served; --allow-host NAME allows more names", "host_not_allowed"});
  if (count("origin") > 1) return refusal({400, "more than one Origin"});
  auto origin = request.header("origin");
  if (count("origin") == 0) return std::nullopt;
  if (!core_.access.origin_allowed(origin, host))
    return refusal({403, "this Origin may not ask; see the CORS option", "origin_not_allowed"});
  if (auto named = core_.access.cors_origin(origin); !named.empty()) {
    exchange.common_headers.emplace_back("Access-Control-Allow-Origin", named);
    exchange.common_headers.emplace_back("Access-Control-Expose-Headers",
                                         "x-request-id, retry-after, "
                                         "x-ratelimit-limit-requests, "
                                         "x-ratelimit-remaining-requests, "
                                         "x-ratelimit-reset-requests, x-ratelimit-limit-tokens, "
                                         "x-ratelimit-remaining-tokens, "
                                         "x-ratelimit-reset-tokens");
    if (named != "*") exchange.common_headers.emplace_back("Vary", "Origin");
    preflight_ =
        request.method == "OPTIONS" && !request.header("access-control-request-method").empty();
  }
  return std::nullopt;
}

// Deny by default: only what is routed to an open handler goes without a key.
Verdict Session::find_handler(ConnectionExchange& exchange) {
  auto& request = exchange.mutable_request();
  route_ = find_route(core_.service.routes, request.method, request.path);
  if (auto keys = core_.keys.get(); !keys->empty()) {
    const ApiKey* key = keys->authenticate(request);
    if (!key && !(route_ && route_->open))
      return refusal(
          {401, "a valid API key is needed: Authorization: Bearer KEY", "invalid_api_key"},
          {{"WWW-Authenticate", "Bearer"}});
    if (key) {
      request.tenant = key->name;
      request.rights = key->rights;
    } else {
      request.rights = {.is_operator = false};
    }
  }
  if (route_) {
    request.argument = *route_argument(route_->path, request.path);
    return count_request(request);
  }
  if (!known_method(request.method)) return refusal({501, "this method is not known here"});
  auto allowed = allowed_methods(core_.service.routes, request.path);
  if (allowed.empty()) return refusal({404, shown(request) + ": no such path", "unknown_url"});
  return refusal(
      {405, fmt::format("{}: allowed here: {}", shown(request), allowed), "method_not_allowed"},
      {{"Allow", allowed}});
}

// Requests that cause work count against the limits of their key; looking does not.
Verdict Session::count_request(HttpRequest& request) {
  if (request.tenant.empty() || route_->method == "GET") return std::nullopt;
  std::optional<OverLimit> over;
  request.use = core_.limits.begin(request.tenant, request.rights, over);
  if (!over) return std::nullopt;
  return refusal(std::move(over->error), std::move(over->headers));
}

asio::awaitable<Verdict> Session::read_body(ConnectionExchange& exchange) {
  if (parser_->done()) co_return std::nullopt;
  if (!exchange.request().header("expect").empty() && exchange.http11 &&
      connection_.input().empty()) {
    bool ok = co_await connection_.write("HTTP/1.1 100 Continue\r\n\r\n");
    if (!ok) co_return client_gone();
  }
  const auto began = Clock::now();
  for (;;) {
    std::size_t used = 0;
    std::optional<HttpError> problem;
    {
      UseMemoryReserve no_reserve(Shortage::kThrow);
      problem = parser_->body(connection_.input(), used);
    }
    connection_.consume(used);
    if (problem) co_return refusal(std::move(*problem));
    if (!exchange.hold_body(parser_->body_bytes()))
      co_return unavailable("too many large requests are in work");
    if (parser_->done()) break;
    const std::chrono::duration<double> earned(static_cast<double>(parser_->body_bytes()) /
                                               core_.options.min_body_rate);
    auto start =
        std::min(Clock::now(), began + std::chrono::duration_cast<Clock::duration>(earned));
    auto got = co_await connection_.more_input(connection_.input().size(),
                                               start + core_.options.body_timeout);
    if (got == Connection::Input::kEnded) co_return client_gone();
    if (got == Connection::Input::kTimeout)
      co_return refusal({408, "the body of the request did not arrive in time"});
  }
  {
    UseMemoryReserve no_reserve(Shortage::kThrow);
    exchange.mutable_request().body = parser_->take_body();
  }
  exchange.keep_alive = parser_->keep_alive();
  co_return std::nullopt;
}

asio::awaitable<void> Session::handle(ConnectionExchange& exchange, const Route& route) {
  std::string failure;
  bool starved = false;
  try {
    co_await route.handle(exchange);
    if (!exchange.begun() && !exchange.gone()) failure = "the handler gave no answer";
  } catch (const std::bad_alloc&) {
    starved = true;
    failure = "out of memory";
  } catch (const std::exception& error) {
    failure = error.what();
  } catch (...) {
    failure = "an unknown exception";
  }
  if (failure.empty()) co_return;
  if (!(exchange.gone() && exchange.begun()))
    LogLine(LogLevel::kError, "handler failed")
        .field("path", exchange.request().path)
        .field("id", exchange.request().id)
        .field("what", failure);
  exchange.keep_alive = false;
  if (exchange.begun()) co_return;
  Refusal answer =
      starved ? unavailable(kNoMemory) : refusal({500, "internal error", "internal_error"});
  HttpBody body = core_.service.write_error(answer.error);
  co_await exchange.reply(answer.error.status, body.content_type, std::move(body.text),
                          std::move(answer.headers));
}

asio::awaitable<void> Session::preflight(ConnectionExchange& exchange) {
  Headers headers;
  headers.emplace_back("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE");
  auto names = sane_names(exchange.request().header("access-control-request-headers"));
  if (!names.empty()) headers.emplace_back("Access-Control-Allow-Headers", names);
  headers.emplace_back("Access-Control-Max-Age", "600");
  co_await exchange.reply(204, "", "", std::move(headers));
}

}  // namespace

asio::awaitable<void> serve(std::shared_ptr<Connection> connection, bool refuse) {
  bool open = co_await connection->handshake();
  if (open) {
    Session session(*connection, refuse);
    auto next = Session::Next::kRequest;
    while (next == Session::Next::kRequest) next = co_await session.serve_one();
    if (next == Session::Next::kLinger) co_await connection->linger();
  }
  connection->close();
}

}  // namespace vitrine
