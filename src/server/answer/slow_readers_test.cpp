// Memory of answers over real sockets: what slow readers may make the server hold.
#include <fstream>

#include "server/answer/pieces.h"
#include "server/api_testing.h"
#include "server/http/test_routes.h"

namespace vitrine {
namespace {

using namespace std::chrono_literals;
using namespace http_testing;

// As many bytes as the query says, at once.
asio::awaitable<void> big(Exchange& exchange) {
  std::string body(std::stoul(exchange.request().query), 'x');
  co_await exchange.reply(200, "text/plain", std::move(body));
}

// The same in pieces, with 1 MB kept for them.
asio::awaitable<void> pieces(Exchange& exchange) {
  Pieces out;
  out.add(std::stoul(exchange.request().query), [](std::string& to, std::size_t) { to += 'x'; });
  Reply reply = reply_in_pieces(std::move(out), 1'000'000);
  co_await send_reply(exchange, std::move(reply));
}

std::vector<Route> big_routes() {
  return {{"GET", "/big", big, false},
          {"GET", "/pieces", pieces, false},
          {"GET", "/hello", hello, false}};
}

TEST_F(HttpTest, AnswersThatAreNotReadAreBounded) {
  auto small = options();
  small.max_answers_bytes = 4'000'000;
  RunningServer server(small, big_routes());
  std::vector<Client> slow;
  for (int i = 0; i < 3; ++i) {
    slow.emplace_back(server.port(), 4096);
    slow.back().send(get("/big?1200000"));
    EXPECT_TRUE(eventually([&] { return server->counts().answer_bytes >= 1'200'000 * (i + 1); }));
  }
  auto over = ask(server.port(), get("/big?1200000"));
  expect_error(over, 503);
  EXPECT_EQ(over.header("retry-after"), "1");
  auto pieces_over = ask(server.port(), get("/pieces?1200000"));
  EXPECT_EQ(pieces_over.status, 503);
  EXPECT_EQ(pieces_over.header("retry-after"), "1");
  EXPECT_EQ(ask(server.port(), get("/hello")).body, "hello");
  EXPECT_EQ(ask(server.port(), get("/pieces?1000")).body.size(), 1000u);
  EXPECT_LT(server->counts().answer_bytes, 4'000'000);
  EXPECT_EQ(slow[0].response().body.size(), 1'200'000u);
  // The client may have it all before the server knows.
  EXPECT_TRUE(eventually([&] { return server->counts().answer_bytes < 2'800'000; }));
  EXPECT_EQ(ask(server.port(), get("/big?1200000")).body.size(), 1'200'000u);
  slow.clear();
  EXPECT_TRUE(eventually([&] { return server->counts().answer_bytes == 0; }));
}

TEST_F(HttpTest, AnAnswerInPiecesIsMadeAsItIsRead) {
  RunningServer server(options(), big_routes());
  std::vector<Client> slow;
  for (int i = 0; i < 5; ++i) {
    slow.emplace_back(server.port(), 4096);
    slow.back().send(get("/pieces?50000000"));
  }
  // What it keeps, and up to one piece with its frame.
  EXPECT_TRUE(eventually([&] { return server->counts().answer_bytes > 5'000'000; }));
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(5ms);
    EXPECT_LE(server->counts().answer_bytes, 5 * (1'000'000 + 2 * 64 * 1024));
  }
  auto whole = ask(server.port(), get("/pieces?5000000"));
  EXPECT_EQ(whole.body.size(), 5'000'000u);
  EXPECT_EQ(whole.header("transfer-encoding"), "chunked");
  EXPECT_EQ(ask(server.port(), get("/pieces?5000")).header("content-length"), "5000");
  slow.clear();
  EXPECT_TRUE(eventually([&] { return server->counts().answer_bytes == 0; }));
}

std::int64_t status_kib(const std::string& name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1));
  return -1;
}

// 15 MiB of single letters are 60 MiB of ids and 95 MiB of JSON.
TEST_F(HttpTest, TokensOfALargeTextTakeLittleMemory) {
  auto tokenizer = test::tiny_tokenizer();
  Api api;
  api.tokenizer = tokenizer.get();
  api.loaded = true;  // without an engine, which this needs not
  RunningServer server(options(), api_service(api).routes);
  std::string text;
  while (text.size() < (15u << 20)) text += "ab cd ";
  std::string request =
      post("/tokenize", fmt::format(R"({{"content":"{}","with_pieces":true}})", text));
  Client client(server.port(), 4096);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
  const std::int64_t before = status_kib("VmRSS");
  ASSERT_TRUE(client.send(request));
  EXPECT_TRUE(eventually([&] { return server->counts().answer_bytes > 0; }));
  ASSERT_TRUE(client.receive_until("\r\n\r\n"));
  EXPECT_LE(server->counts().answer_bytes, std::int64_t{100} << 20);
  std::size_t bytes = 0;
  for (std::string some; !(some = client.receive(1 << 20, kPatience)).empty();) {
    bytes += some.size();
    if (some.ends_with("\r\n0\r\n\r\n")) break;
  }
  EXPECT_GT(bytes, 90u << 20);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(status_kib("VmHWM") - before, 400 << 10);
#endif
  EXPECT_GT(before, 0);
}

}  // namespace
}  // namespace vitrine
