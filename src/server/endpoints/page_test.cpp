#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "server/api_test_fixture.h"
#include "server/http/test_routes.h"

namespace vitrine {
namespace {

using http_testing::options;
using test::ApiTest;
using test::FakeExchange;
using ::testing::HasSubstr;

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

const std::string kLarge(300'000, 'x');

class PageTest : public ApiTest {
 protected:
  PageTest() {
    api.page = assets;
    set_log_level(LogLevel::kError);
  }
  ~PageTest() override { set_log_level(LogLevel::kInfo); }
  std::unique_ptr<FakeExchange> fetch(const std::string& path, Headers headers = {}) {
    auto x = std::make_unique<FakeExchange>(io, "");
    x->mutable_request().method = "GET";
    x->mutable_request().headers = std::move(headers);
    begin(*x, path);
    turn();
    return x;
  }
  static std::string header(const FakeExchange& x, std::string_view name) {
    std::string out;
    for (const auto& [key, value] : x.headers)
      if (key == name) out += (out.empty() ? "" : " and ") + value;
    return out;
  }
  const std::vector<Asset> assets{
      {"/", "text/html; charset=utf-8", "1a", false, bytes_of("<p>"), {}, {}},
      {"/ui/assets/a-1.js", "text/javascript; charset=utf-8", "2b", true, bytes_of("raw"),
       bytes_of("gz"), bytes_of("br")},
      {"/ui/only.css", "text/css; charset=utf-8", "3c", false, bytes_of("raw"), bytes_of("gz"), {}},
      {"/ui/large.txt", "text/plain; charset=utf-8", "4d", false, bytes_of(kLarge), {}, {}}};
};

TEST_F(PageTest, HeadersOfEveryAnswer) {
  const std::string script = "/ui/assets/a-1.js";
  for (const std::string& path : {std::string("/"), script, std::string("/ui/none")}) {
    auto x = fetch(path);
    EXPECT_EQ(header(*x, "Content-Security-Policy"), kPolicy) << path;
    EXPECT_EQ(header(*x, "Referrer-Policy"), "no-referrer") << path;
    EXPECT_EQ(header(*x, "Cross-Origin-Opener-Policy"), "same-origin") << path;
    EXPECT_EQ(header(*x, "Cache-Control"),
              path == script ? "public, max-age=31536000, immutable" : "no-cache")
        << path;
  }
  auto x = fetch("/");
  EXPECT_EQ(x->status, 200);
  EXPECT_EQ(x->body, "<p>");
  EXPECT_EQ(x->content_type, "text/html; charset=utf-8");
  EXPECT_EQ(header(*x, "ETag"), "\"1a\"");
  EXPECT_EQ(header(*x, "Vary"), "Accept-Encoding");
  EXPECT_EQ(header(*x, "Content-Encoding"), "");
}

TEST_F(PageTest, TheBestEncodingThatTheClientTakes) {
  auto got = [&](const char* path, const char* accept) {
    auto x = fetch(path, {{"accept-encoding", accept}});
    EXPECT_EQ(x->status, 200);
    EXPECT_EQ(header(*x, "Vary"), "Accept-Encoding");
    return fmt::format("{} {} {}", x->body, header(*x, "Content-Encoding"), header(*x, "ETag"));
  };
  const char* both = "/ui/assets/a-1.js";
  EXPECT_EQ(got(both, "gzip, deflate, br, zstd"), "br br \"2b-br\"");
  EXPECT_EQ(got(both, "gzip, br;q=0"), "gz gzip \"2b-gz\"");
  EXPECT_EQ(got(both, "gzip;q=0.1"), "gz gzip \"2b-gz\"");
  EXPECT_EQ(got(both, "br;q=0, gzip;q=0.000"), "raw  \"2b\"");
  EXPECT_EQ(got(both, "identity"), "raw  \"2b\"");
  EXPECT_EQ(got(both, ""), "raw  \"2b\"");
  EXPECT_EQ(got("/ui/only.css", "br, gzip"), "gz gzip \"3c-gz\"");
  EXPECT_EQ(got("/", "br, gzip"), "<p>  \"1a\"");
}

TEST_F(PageTest, NotModified) {
  const char* path = "/ui/assets/a-1.js";
  auto status = [&](const char* tag, const char* accept) {
    return fetch(path, {{"if-none-match", tag}, {"accept-encoding", accept}})->status;
  };
  EXPECT_EQ(status("\"2b-br\"", "br"), 304);
  EXPECT_EQ(status("W/\"2b-gz\", \"2b-br\"", "br"), 304);
  EXPECT_EQ(status("*", "br"), 304);
  EXPECT_EQ(status("\"2b-br\"", "gzip"), 200) << "another encoding";
  EXPECT_EQ(status("\"2b\"", "br"), 200);
  EXPECT_EQ(status("2b-br", "br"), 200);
  auto x = fetch(path, {{"if-none-match", "\"2b\""}});
  EXPECT_EQ(x->status, 304);
  EXPECT_EQ(x->body, "");
  EXPECT_EQ(x->content_type, "");
  EXPECT_EQ(header(*x, "ETag"), "\"2b\"");
  EXPECT_EQ(header(*x, "Vary"), "Accept-Encoding");
  EXPECT_EQ(header(*x, "Cache-Control"), "public, max-age=31536000, immutable");
}

TEST_F(PageTest, WhatIsNotThere) {
  auto x = fetch("/ui/none.js");
  EXPECT_EQ(x->status, 404);
  EXPECT_EQ(x->content_type, "application/json");
  json::value error = json::parse(x->body).at("error");
  EXPECT_EQ(error.at("message"), "GET /ui/none.js: the page has no such file");
  EXPECT_EQ(error.at("type"), "invalid_request_error");
  EXPECT_EQ(error.at("code"), "unknown_url");
  EXPECT_LT(fetch("/ui/" + std::string(16'000, 'a'))->body.size(), 400u) << "a short echo";
  api.page = {};
  for (const char* path : {"/", "/ui/assets/a-1.js"}) {
    x = fetch(path);
    EXPECT_EQ(x->status, 404);
    error = json::parse(x->body).at("error");
    EXPECT_THAT(std::string(error.at("message").as_string()),
                HasSubstr(": the page was switched off (--no-ui)"));
    EXPECT_EQ(error.at("code"), "page_off");
  }
}

TEST_F(PageTest, BeforeTheModelIsLoaded) {
  api.loaded = false, api.engine = nullptr;
  EXPECT_EQ(fetch("/")->status, 200);
  EXPECT_EQ(fetch("/ui/assets/a-1.js")->status, 200);
  EXPECT_EQ(fetch("/ui/none")->status, 404);
  api.attach(*engine);
}

TEST_F(PageTest, AsABrowserAsksOverTheWire) {
  RunningServer server(options(), api_service(api).routes);
  const std::string navigation =
      "Upgrade-Insecure-Requests: 1\r\nSec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n"
      "Sec-Fetch-User: ?1\r\nSec-Fetch-Dest: document\r\nAccept-Encoding: gzip, deflate, br, "
      "zstd\r\n";
  Response page = ask(server.port(), vitrine::get("/", navigation));
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.body, "<p>");
  EXPECT_EQ(page.header("x-content-type-options"), "nosniff");
  EXPECT_EQ(page.header("content-security-policy"), kPolicy);
  // A page of another site has a link to this one.
  EXPECT_EQ(
      ask(server.port(), vitrine::get("/",
                                      "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"
                                      "Referer: https://example.com/\r\n"))
          .status,
      200);
  const std::string own = fmt::format("Origin: http://127.0.0.1:{}\r\n", server.port());
  auto origin = [&](const std::string& line) {
    return ask(server.port(), fmt::format("POST /tokenize HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n"
                                          "{}Content-Length: 15\r\n\r\n{{\"content\":\"a\"}}",
                                          server.port(), line))
        .status;
  };
  EXPECT_EQ(origin(own + "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n"), 200);
  EXPECT_EQ(origin("Origin: https://example.com\r\n"), 403);
}

TEST_F(PageTest, BodilessAnswersLeaveTheConnectionInStep) {
  RunningServer server(options(), api_service(api).routes);
  Client client(server.port());
  client.send(vitrine::get("/ui/large.txt", "If-None-Match: \"4d\"\r\n"));
  Response same = client.response(true);
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.header("content-length"), "");
  EXPECT_EQ(same.header("transfer-encoding"), "");
  EXPECT_EQ(same.header("etag"), "\"4d\"");
  client.send("HEAD /ui/large.txt HTTP/1.1\r\nHost: localhost\r\n\r\n");
  Response head = client.response(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("content-length"), std::to_string(kLarge.size()));
  client.send("HEAD /ui/none HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.response(true).status, 404);
  client.send(vitrine::get("/ui/large.txt"));
  Response whole = client.response();
  EXPECT_EQ(whole.status, 200);
  EXPECT_TRUE(whole.complete);
  EXPECT_EQ(whole.body, kLarge);
  client.send(vitrine::get("/"));
  EXPECT_EQ(client.response().body, "<p>");
}

// The page is nobody's memory, so that its readers do not take the room of answers.
TEST_F(PageTest, DoesNotCountAsAnAnswerThatIsHeld) {
  HttpOptions small = options();
  small.max_answers_bytes = 1024;
  RunningServer server(small, api_service(api).routes);
  EXPECT_EQ(ask(server.port(), vitrine::get("/ui/large.txt")).body, kLarge);
  Client slow(server.port(), 4096);
  slow.send(vitrine::get("/ui/large.txt"));
  ASSERT_TRUE(slow.receive_until("\r\n\r\n"));
  EXPECT_LT(server->counts().answer_bytes, 2048);
}

// Paths are compared as they were sent: nothing is decoded, and there are no folders to leave.
TEST_F(PageTest, HostilePaths) {
  RunningServer server(options(), api_service(api).routes);
  auto status = [&](std::string_view path) {
    std::string request = "GET ";
    request += path;
    return ask(server.port(), request + " HTTP/1.1\r\nHost: localhost\r\n\r\n").status;
  };
  for (const char* path : {"/ui/../x",
                           "/ui/../",
                           "/ui/..",
                           "/ui/../../../../etc/passwd",
                           "/ui/%2e%2e/",
                           "/ui/%2e%2e%2fx",
                           "/ui/",
                           "/ui",
                           "//",
                           "/ui//assets/a-1.js",
                           "/ui/./assets/a-1.js",
                           "/ui/assets/../only.css",
                           "/ui/%6fnly.css",
                           "/ui/only.css/",
                           "/ui/only.css%00",
                           "/ui/only.css%00.txt",
                           "/ui/*",
                           "/ui/assets/",
                           "/ui/only.css.gz",
                           "/UI/only.css",
                           "/index.html",
                           "/ui/index.html",
                           "/ui/..%5c..%5cx",
                           "/ui/only.css;x",
                           "/ui\\only.css"})
    EXPECT_EQ(status(path), 404) << path;
  EXPECT_EQ(status(std::string_view("/ui/only.css\0", 13)), 400);
  EXPECT_EQ(status("/ui/only.css\x01"), 400);
  EXPECT_EQ(status("/ui/\xc3\xa4"), 400);
  EXPECT_EQ(status("/ui/" + std::string(15'000, 'a')), 404);
  EXPECT_EQ(status("/ui/" + std::string(100'000, 'a')), 414);
  EXPECT_EQ(status("/ui/only.css?a=../../b"), 200);
}

TEST_F(PageTest, NeedsNoKey) {
  std::string name = std::filesystem::temp_directory_path() / "keys-XXXXXX";
  int file = ::mkstemp(name.data());
  ASSERT_GE(file, 0);
  ::close(file);
  std::ofstream(name) << "sk-a ann\n";
  HttpOptions guarded = options();
  guarded.api_keys_file = name;
  RunningServer server(guarded, api_service(api).routes);
  std::filesystem::remove(name);
  for (const char* path : {"/", "/ui/assets/a-1.js", "/ui/large.txt"}) {
    EXPECT_EQ(ask(server.port(), vitrine::get(path)).status, 200) << path;
    EXPECT_EQ(ask(server.port(), vitrine::get(path, "Authorization: Bearer wrong\r\n")).status,
              200);
  }
  for (const char* path : {"/api/info", "/api/requests", "/ready", "/v1/models", "/x"})
    EXPECT_EQ(ask(server.port(), vitrine::get(path)).status, 401) << path;
  EXPECT_EQ(ask(server.port(), post("/", "x")).status, 401);
}

}  // namespace
}  // namespace vitrine
