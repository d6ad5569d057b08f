// The transport over real sockets: routes, access, logs, starting and stopping.
#include "server/http/http.h"

#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "server/http/test_routes.h"

namespace vitrine {
namespace {

using namespace std::chrono_literals;
using namespace http_testing;
using ::testing::HasSubstr;

TEST_F(HttpTest, AnswersAndRoutes) {
  RunningServer server(options(), routes());
  auto answer = ask(server.port(), get("/hello?x=1"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.header("content-type"), "text/plain");
  EXPECT_FALSE(answer.header("date").empty());
  std::string bytes("some\0body", 9);
  EXPECT_EQ(ask(server.port(), post("/echo", bytes)).body, bytes);
  EXPECT_EQ(ask(server.port(), get("/items/a/b")).body, "item a/b");
  EXPECT_EQ(ask(server.port(), get("/items/exact")).body, "hello");
  EXPECT_FALSE(ask(server.port(), get("/items/a")).headers.contains("x-injected"));
  expect_error(ask(server.port(), get("/items/")), 404);
  auto head = ask(server.port(), "HEAD /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("content-length"), "5");
  auto wrong = ask(server.port(), post("/hello", "x"));
  expect_error(wrong, 405);
  EXPECT_EQ(wrong.header("allow"), "GET, HEAD");
  expect_error(ask(server.port(), "BREW /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"), 501);
  expect_error(ask(server.port(), "get /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"), 501);
  expect_error(ask(server.port(), "OPTIONS /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"), 405);
  EXPECT_GE(server->counts().requests, 10u);
}

TEST_F(HttpTest, OnlyTheExactPathIsRouted) {
  RunningServer server(options(), routes());
  for (const char* path : {"/", "/hello/", "//hello", "/./hello", "/x/../hello", "/%68ello",
                           "/hello;a", "/HELLO", "/hello%00", "/hello%2e%2e", "/items",
                           "http://localhost/hello", "http://evil.example/hello", "localhost:80",
                           "*", "/hello#x", "/hell", "/helloo", "\\hello"})
    expect_error(ask(server.port(), get(path)), 404);
}

TEST_F(HttpTest, HandlersThatFail) {
  RunningServer server(options(), routes());
  for (const char* path : {"/fail", "/silent", "/worker-fails"})
    expect_error(ask(server.port(), get(path)), 500);
  Client client(server.port());
  client.send(get("/fail-late"));
  auto cut = client.response();
  EXPECT_EQ(cut.status, 200);
  EXPECT_EQ(cut.body, "data: 1\n\n");
  EXPECT_FALSE(cut.complete);
  EXPECT_TRUE(client.ends());
  EXPECT_EQ(ask(server.port(), get("/hello")).body, "hello");
}

TEST_F(HttpTest, TheMostExactPathDecides) {
  RunningServer server(options(), routes());
  auto status = [&](const char* method, const char* path) {
    return ask(server.port(), fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\n"
                                          "Content-Length: 0\r\n\r\n",
                                          method, path));
  };
  EXPECT_EQ(status("POST", "/items/7/parts").body, "item 7");
  EXPECT_EQ(status("GET", "/items/7").body, "item 7");
  EXPECT_EQ(status("DELETE", "/items/7").body, "item 7");
  EXPECT_EQ(status("GET", "/items/7/other").body, "item 7/other");
  EXPECT_EQ(status("POST", "/items/7/8/parts").status, 405) << "a star within is one segment";
  auto wrong = status("GET", "/items/7/parts");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("allow"), "POST");
  EXPECT_EQ(status("PUT", "/items/7").header("allow"), "GET, HEAD, DELETE");
  EXPECT_EQ(status("GET", "/items//parts").body, "item /parts") << "no segment";
  EXPECT_EQ(status("POST", "/items/").status, 404);
}

TEST_F(HttpTest, WorkersRunElsewhereAndNicer) {
  RunningServer server(options(), routes());
  int here = ::getpriority(PRIO_PROCESS, 0);
  EXPECT_EQ(ask(server.port(), get("/worker")).body, fmt::format("true {}", std::max(here, 10)));
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), here);
}

TEST_F(HttpTest, KeepAliveAndPipelining) {
  RunningServer server(options(), routes());
  Client client(server.port());
  std::string large(300'000, 'x');
  // All at once, in odd pieces, with empty lines between.
  std::string all;
  for (int i = 0; i < 20; ++i)
    all += post("/echo", fmt::format("body {}", i)) + "\r\n" + get("/hello");
  all += post("/echo", large) + get("/nothing") + get("/hello", "Connection: close\r\n");
  std::thread sender([&] {
    for (std::size_t at = 0; at < all.size(); at += 777)
      client.send(std::string_view(all).substr(at, 777));
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(client.response().body, fmt::format("body {}", i));
    EXPECT_EQ(client.response().body, "hello");
  }
  EXPECT_EQ(client.response().body, large);
  expect_error(client.response(), 404);
  auto last = client.response();
  EXPECT_EQ(last.body, "hello");
  EXPECT_EQ(last.header("connection"), "close");
  EXPECT_TRUE(client.ends());
  sender.join();
  EXPECT_EQ(server->counts().accepted, 1u);
}

TEST_F(HttpTest, Http10) {
  RunningServer server(options(), routes());
  Client once(server.port());
  once.send("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_EQ(once.response().body, "hello");
  EXPECT_TRUE(once.ends());
  Client kept(server.port());
  for (int i = 0; i < 3; ++i) {
    kept.send("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    auto answer = kept.response();
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(answer.header("connection"), "keep-alive");
  }
  // A client that ends its side at once still gets its answer.
  Client half(server.port());
  half.send(get("/hello"));
  half.finish();
  EXPECT_EQ(half.response().body, "hello");
}

TEST_F(HttpTest, ExpectContinue) {
  RunningServer server(options(), routes());
  Client client(server.port());
  client.send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
      "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.response().status, 100);
  client.send("body");
  EXPECT_EQ(client.response().body, "body");
  // What is refused is refused before the body is asked for.
  client.send(
      "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
      "Expect: 100-continue\r\n\r\n");
  expect_error(client.response(), 404);
  expect_error(ask(server.port(), get("/hello", "Expect: cookies\r\n")), 417);
}

std::string key_file(const std::string& text) {
  auto path = std::filesystem::temp_directory_path() / fmt::format("vitrine-keys-{}", ::getpid());
  std::ofstream(path) << text;
  return path.string();
}

TEST_F(HttpTest, KeysGuardEverythingThatIsNotOpen) {
  auto guarded = options();
  guarded.api_keys_file = key_file("sk-a alice 2\nsk-b\n");
  RunningServer server(guarded, routes());
  std::filesystem::remove(guarded.api_keys_file);
  for (const auto& route : routes()) {
    std::string path = route.path;
    if (const auto star = path.find('*'); star != path.npos) path.replace(star, 1, "x");
    for (const char* method : {"GET", "POST", "HEAD", "PUT", "OPTIONS", "BREW"}) {
      bool open = route.open && (method == route.method || method == std::string_view("HEAD"));
      for (const char* key : {"", "Authorization: Bearer sk-c\r\n", "x-api-key: \r\n"}) {
        auto answer = ask(server.port(), fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
                                                     method, path, key));
        EXPECT_EQ(answer.status, open ? 200 : 401) << method << " " << path;
        EXPECT_EQ(answer.header("www-authenticate"), open ? "" : "Bearer");
      }
    }
  }
  for (const char* path :
       {"/nothing", "/", "//health", "/health/", "/health/../hello", "/health;x"})
    expect_error(ask(server.port(), get(path)), 401);
  EXPECT_EQ(ask(server.port(), get("/tenant", "Authorization: Bearer sk-a\r\n")).body, "alice 2");
  EXPECT_EQ(ask(server.port(), get("/tenant", "X-Api-Key: sk-b\r\n")).body, "key-18519d64 1");
  expect_error(ask(server.port(), get("/nothing", "Authorization: Bearer sk-a\r\n")), 404);
}

TEST_F(HttpTest, KeysHaveLimits) {
  auto guarded = options();
  guarded.api_keys_file = key_file("sk-a alice rpm_limit=2\nsk-b bob\n");
  RunningServer server(guarded, routes());
  std::filesystem::remove(guarded.api_keys_file);
  auto post = [&](const char* key) {
    return ask(server.port(), fmt::format("POST /echo HTTP/1.1\r\nHost: localhost\r\nx-api-key: "
                                          "{}\r\nContent-Length: 2\r\n\r\nhi",
                                          key));
  };
  for (const char* left : {"1", "0"}) {
    auto answer = post("sk-a");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.header("x-ratelimit-limit-requests"), "2");
    EXPECT_EQ(answer.header("x-ratelimit-remaining-requests"), left);
  }
  auto over = post("sk-a");
  expect_error(over, 429);
  EXPECT_THAT(over.body, HasSubstr("rpm_limit of the key"));
  EXPECT_EQ(over.header("x-ratelimit-remaining-requests"), "0");
  EXPECT_GE(std::stoi(over.header("retry-after")), 25);
  EXPECT_EQ(post("sk-b").status, 200) << "another key is not concerned";
  EXPECT_EQ(post("sk-b").header("x-ratelimit-limit-requests"), "");
  EXPECT_EQ(ask(server.port(), get("/hello", "x-api-key: sk-a\r\n")).status, 200)
      << "looking does not count";
}

TEST_F(HttpTest, HostAndOriginOverTheWire) {
  auto named = options();
  named.allow_hosts = {"models.example"};
  named.cors_origins = {"https://app.example"};
  RunningServer server(named, routes());
  auto with = [&](std::string_view headers) {
    return ask(server.port(), fmt::format("GET /hello HTTP/1.1\r\n{}\r\n", headers));
  };
  EXPECT_EQ(with("Host: models.example:99\r\n").status, 200);
  auto evil = with("Host: evil.example\r\n");
  expect_error(evil, 403);
  EXPECT_THAT(evil.body, HasSubstr("--allow-host"));
  expect_error(with(""), 400);
  expect_error(with("Host: localhost\r\nHost: localhost\r\n"), 400);
  expect_error(with("Host: localhost/?x\r\n"), 403);
  expect_error(with("Host: localhost\r\nOrigin: https://evil.example\r\n"), 403);
  expect_error(with("Host: localhost\r\nOrigin: null\r\n"), 403);
  expect_error(with("Host: localhost\r\nOrigin: \r\n"), 403);
  auto same = with("Host: localhost\r\nOrigin: http://localhost\r\n");
  EXPECT_EQ(same.status, 200);
  EXPECT_FALSE(same.headers.contains("access-control-allow-origin"));
  auto cors = with("Host: localhost\r\nOrigin: https://app.example\r\n");
  EXPECT_EQ(cors.status, 200);
  EXPECT_EQ(cors.header("access-control-allow-origin"), "https://app.example");
  EXPECT_EQ(cors.header("vary"), "Origin");
}

TEST_F(HttpTest, Preflight) {
  auto guarded = options();
  guarded.cors_origins = {"https://app.example"};
  guarded.api_keys_file = key_file("sk-a\n");
  RunningServer server(guarded, routes());
  std::filesystem::remove(guarded.api_keys_file);
  auto preflight = [&](std::string_view origin, std::string_view names) {
    return ask(server.port(),
               fmt::format("OPTIONS /echo HTTP/1.1\r\nHost: localhost\r\nOrigin: {}\r\n"
                           "Access-Control-Request-Method: POST\r\n"
                           "Access-Control-Request-Headers: {}\r\n\r\n",
                           origin, names));
  };
  auto good = preflight("https://app.example", "authorization, x-stainless-os");
  EXPECT_EQ(good.status, 204);
  EXPECT_EQ(good.header("access-control-allow-origin"), "https://app.example");
  EXPECT_EQ(good.header("access-control-allow-headers"), "authorization, x-stainless-os");
  for (const char* method : {"POST", "DELETE"})
    EXPECT_THAT(good.header("access-control-allow-methods"), HasSubstr(method));
  EXPECT_EQ(preflight("https://app.example", "<script>").header("access-control-allow-headers"),
            "");
  expect_error(preflight("https://evil.example", "authorization"), 403);
  expect_error(preflight("http://localhost", "authorization"), 401);
}

TEST_F(HttpTest, RequestIds) {
  RunningServer server(options(), routes());
  auto id = [&](std::string_view header) {
    return ask(server.port(), get("/hello", header)).header("x-request-id");
  };
  EXPECT_EQ(id("X-Request-Id: abc.DEF_1-2\r\n"), "abc.DEF_1-2");
  EXPECT_EQ(id("X-Request-Id: " + std::string(64, 'a') + "\r\n"), std::string(64, 'a'));
  auto first = id("");
  EXPECT_EQ(first.size(), 20u);
  EXPECT_NE(first, id(""));
  for (const auto& bad : {std::string("a b"), std::string(65, 'a'), std::string("a\"b"),
                          std::string("\xc3\xa9"), std::string()})
    EXPECT_EQ(id("X-Request-Id: " + bad + "\r\n").size(), 20u) << bad;
  EXPECT_EQ(ask(server.port(), get("/nothing", "X-Request-Id: mine\r\n")).header("x-request-id"),
            "mine");
}

TEST_F(HttpTest, ErrorsLookAsTheServiceWritesThem) {
  HttpService service{routes()};
  service.write_error = [](const HttpError& error) {
    return HttpBody{"text/x-error", fmt::format("{} {}", error.status, error.code)};
  };
  auto made = HttpServer::create(options(), std::move(service));
  ASSERT_TRUE(made.ok()) << made.error().message;
  std::thread thread([&] { EXPECT_TRUE((*made)->run().ok()); });
  for (auto [path, body] : {std::pair{"/nothing", "404 unknown_url"},
                            {"/fail", "500 internal_error"},
                            {"/silent", "500 internal_error"}}) {
    auto answer = ask((*made)->port(), get(path));
    EXPECT_EQ(answer.header("content-type"), "text/x-error") << path;
    EXPECT_EQ(answer.body, body) << path;
  }
  (*made)->stop();
  thread.join();
}

TEST_F(HttpTest, LogsOneJsonLineForEachRequest) {
  ::testing::internal::CaptureStderr();
  set_log_level(LogLevel::kInfo);
  {
    RunningServer server(options(), routes());
    // On one connection, so that the lines come in order.
    Client client(server.port());
    client.send(get("/hello?secret=1", "X-Request-Id: one\r\n") +
                get("/nothing\"\\", "X-Request-Id: two\r\n") + "GARBAGE\r\n\r\n");
    EXPECT_TRUE(client.ends());
    ask(server.port(), get("/fail", "X-Request-Id: four\r\n"));
  }
  set_log_level(LogLevel::kError);
  std::istringstream log(::testing::internal::GetCapturedStderr());
  std::vector<json::object> lines;
  for (std::string line; std::getline(log, line);) {
    auto parsed = parse_json(line, "log");
    ASSERT_TRUE(parsed.ok()) << line;
    lines.push_back(parsed->as_object());
  }
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0].at("event"), "request");
  EXPECT_EQ(lines[0].at("level"), "info");
  EXPECT_EQ(lines[0].at("path"), "/hello");
  EXPECT_EQ(lines[0].at("status"), 200);
  EXPECT_EQ(lines[0].at("id"), "one");
  EXPECT_GT(lines[0].at("bytes").to_number<int>(), 5);
  EXPECT_EQ(lines[1].at("level"), "warn");
  EXPECT_EQ(lines[1].at("path"), "/nothing\"\\");
  EXPECT_EQ(lines[2].at("status"), 400);
  EXPECT_EQ(lines[3].at("event"), "handler failed");
  EXPECT_EQ(lines[3].at("level"), "error");
  EXPECT_EQ(lines[4].at("status"), 500);
}

TEST_F(HttpTest, WhatCannotBeServedIsAnErrorThatNamesIt) {
  auto message = [](HttpOptions bad) {
    auto made = HttpServer::create(std::move(bad), {});
    return made.ok() ? std::string("it was made") : made.error().message;
  };
  RunningServer server(options(), routes());
  auto taken = options();
  taken.port = server.port();
  EXPECT_THAT(message(taken), HasSubstr(std::to_string(server.port())));
  auto port = options();
  port.port = 70000;
  EXPECT_THAT(message(port), HasSubstr("70000"));
  auto host = options();
  host.host = "256.1.1.1";
  EXPECT_THAT(message(host), HasSubstr("256.1.1.1"));
  auto keys = options();
  keys.api_keys_file = "no-such-keys";
  EXPECT_THAT(message(keys), HasSubstr("no-such-keys"));
  auto half = options();
  half.tls_key = "key.pem";
  EXPECT_THAT(message(half), HasSubstr("both"));
  auto certificate = options();
  certificate.tls_certificate = "no-such.pem";
  certificate.tls_key = "key.pem";
  EXPECT_THAT(message(certificate), HasSubstr("no-such.pem"));
  auto threads = options();
  threads.io_threads = 0;
  EXPECT_THAT(message(threads), HasSubstr("threads"));
  auto allow = options();
  allow.allow_hosts = {"a b"};
  EXPECT_THAT(message(allow), HasSubstr("a b"));
}

TEST_F(HttpTest, DrainEndsIdleConnectionsAndRun) {
  RunningServer server(options(), routes());
  Client idle(server.port()), used(server.port()), begun(server.port()), late(server.port());
  used.send(get("/hello"));
  EXPECT_EQ(used.response().status, 200);
  begun.send("GET /hello HTTP/1.1\r\nHo");
  EXPECT_TRUE(eventually([&] { return server->counts().requests == 2; }));
  server->stop_accepting();
  // A first request that was on its way is told.
  late.send(get("/hello"));
  expect_error(late.response(), 503);
  EXPECT_TRUE(idle.ends());
  EXPECT_TRUE(used.ends());
  begun.send("st: localhost\r\n\r\n");
  expect_error(begun.response(), 503);
  EXPECT_TRUE(begun.ends());
  server.join();
  EXPECT_FALSE(Client(server.port()).connected());
}

TEST_F(HttpTest, StoppingBeforeRunningAndLeavingNothingBehind) {
  std::thread([] {}).join();  // a sanitizer's own thread comes with the first one
  int descriptors = open_descriptors(), running = threads();
  for (int i = 0; i < 3; ++i) {
    auto made = HttpServer::create(options(), {routes()});
    ASSERT_TRUE(made.ok());
    if (i == 0) continue;
    i == 1 ? (*made)->stop() : (*made)->stop_accepting();
    EXPECT_TRUE((*made)->run().ok());
  }
  {
    RunningServer server(options(), routes());
    std::vector<Client> clients;
    for (int i = 0; i < 20; ++i) {
      clients.emplace_back(server.port());
      clients.back().send(i % 2 ? get("/hello") : "POST /echo HTTP/1.1\r\nHost: local");
    }
    EXPECT_TRUE(eventually([&] { return server->counts().requests == 20; }));
  }
  EXPECT_TRUE(eventually([&] { return open_descriptors() == descriptors; }));
  EXPECT_TRUE(eventually([&] { return threads() == running; }));
}

}  // namespace
}  // namespace vitrine
