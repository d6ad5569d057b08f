// The same server behind TLS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "server/http/test_client.h"

namespace vitrine {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct Pair {
  std::string certificate, key;
};

// A key and a certificate that it signs itself, as PEM files.
Pair make_pair(const std::filesystem::path& folder, const std::string& name) {
  Pair out{(folder / (name + ".crt")).string(), (folder / (name + ".key")).string()};
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  auto* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate, subject);
  X509_sign(certificate, key, EVP_sha256());
  FILE* file = std::fopen(out.certificate.c_str(), "w");
  PEM_write_X509(file, certificate);
  std::fclose(file);
  file = std::fopen(out.key.c_str(), "w");
  PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return out;
}

class TlsClient {
 public:
  explicit TlsClient(int port, int version = TLS1_3_VERSION) : client_(port) {
    context_ = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(context_, version);
    SSL_CTX_set_max_proto_version(context_, version);
    SSL_CTX_set_security_level(context_, 0);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, client_.descriptor());
    connected_ = SSL_connect(ssl_) == 1;
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  bool connected() const { return connected_; }
  void send(std::string_view data) {
    EXPECT_EQ(SSL_write(ssl_, data.data(), static_cast<int>(data.size())),
              static_cast<int>(data.size()));
  }
  // Until `text` has come; everything that came.
  std::string receive_until(std::string_view text) {
    std::string out, piece(16 << 10, '\0');
    while (out.find(text) == out.npos) {
      int n = SSL_read(ssl_, piece.data(), static_cast<int>(piece.size()));
      if (n <= 0) break;
      out.append(piece.data(), static_cast<std::size_t>(n));
    }
    return out;
  }
  // The server said goodbye in the way of TLS, so that nothing can have been cut off.
  bool ended_well() {
    char byte;
    int n = SSL_read(ssl_, &byte, 1);
    return n <= 0 && SSL_get_error(ssl_, n) == SSL_ERROR_ZERO_RETURN;
  }
  void shut_down() { SSL_shutdown(ssl_); }

 private:
  Client client_;
  SSL_CTX* context_;
  SSL* ssl_;
  bool connected_;
};

asio::awaitable<void> echo(Exchange& exchange) {
  std::string body = exchange.request().body + "<end>";
  co_await exchange.reply(200, "text/plain", std::move(body));
}

asio::awaitable<void> events(Exchange& exchange) {
  co_await exchange.begin_events();
  for (int i = 0; i < 100; ++i) {
    std::string frame =
        fmt::format("data: {}\n\n", std::string(1000, static_cast<char>('a' + i % 26)));
    co_await exchange.send(std::move(frame));
  }
  co_await exchange.send("data: [DONE]\n\n");
  co_await exchange.end();
}

std::atomic<int> left{0};

asio::awaitable<void> wait(Exchange& exchange) {
  bool here = co_await exchange.wait();
  if (!here) ++left;
}

class TlsTest : public ::testing::Test {
 protected:
  TlsTest()
      : folder_(std::filesystem::temp_directory_path() /
                fmt::format("vitrine-tls-{}", ::getpid())) {
    std::filesystem::create_directories(folder_);
    pair_ = make_pair(folder_, "one");
    set_log_level(LogLevel::kError);
  }
  ~TlsTest() override {
    std::filesystem::remove_all(folder_);
    set_log_level(LogLevel::kInfo);
  }
  HttpOptions options() {
    HttpOptions out;
    out.port = 0;
    out.io_threads = 2;
    out.tls_certificate = pair_.certificate;
    out.tls_key = pair_.key;
    out.header_timeout = 1s;
    return out;
  }
  static std::vector<Route> routes() {
    return {{"POST", "/echo", echo, false},
            {"GET", "/events", events, false},
            {"GET", "/wait", wait, false}};
  }
  std::filesystem::path folder_;
  Pair pair_;
};

TEST_F(TlsTest, RequestsAndEvents) {
  RunningServer server(options(), routes());
  for (int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(server.port(), version);
    ASSERT_TRUE(client.connected());
    std::string large(1'000'000, 'x');
    client.send(post("/echo", large));
    EXPECT_THAT(client.receive_until("<end>"), HasSubstr(large + "<end>"));
    client.send(get("/events") + get("/events"));
    auto both = client.receive_until("0\r\n\r\nHTTP/1.1 200");
    EXPECT_THAT(both, HasSubstr("data: [DONE]"));
    client.receive_until("0\r\n\r\n");
    client.send(post("/echo", "a", "Connection: close\r\n"));
    client.receive_until("a<end>");
    EXPECT_TRUE(client.ended_well());
  }
  TlsClient old(server.port());
  old.send("GET /events HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old.receive_until("data: [DONE]\n\n"), HasSubstr("data: aaa"));
  EXPECT_TRUE(old.ended_well());
}

TEST_F(TlsTest, OldVersionsAndPlainTextAreTurnedAway) {
  RunningServer server(options(), routes());
  EXPECT_FALSE(TlsClient(server.port(), TLS1_1_VERSION).connected());
  Client plain(server.port());
  plain.send(get("/events"));
  EXPECT_TRUE(plain.ends());
  EXPECT_THAT(plain.rest(), ::testing::Not(HasSubstr("HTTP")));
  Client silent(server.port());  // never begins the handshake
  EXPECT_TRUE(silent.ends());
  EXPECT_TRUE(eventually([&] { return server->counts().connections == 0; }));
}

TEST_F(TlsTest, AClientThatLeavesIsNoticed) {
  left = 0;
  RunningServer server(options(), routes());
  for (int way = 0; way < 2; ++way) {
    TlsClient client(server.port());
    client.send(get("/wait"));
    std::this_thread::sleep_for(50ms);
    if (way == 0) client.shut_down();
  }
  EXPECT_TRUE(eventually([&] { return left == 2; }));
  EXPECT_TRUE(eventually([&] { return server->counts().connections == 0; }));
}

TEST_F(TlsTest, WrongFilesAreNamed) {
  auto other = make_pair(folder_, "two");
  std::ofstream(folder_ / "garbage.pem") << "not a certificate";
  auto garbage = (folder_ / "garbage.pem").string();
  struct Case {
    std::string certificate, key, names;
  };
  const Case cases[] = {{garbage, pair_.key, garbage},
                        {pair_.certificate, garbage, garbage},
                        {pair_.certificate, "no-such-key", "no-such-key"},
                        {pair_.certificate, other.key, other.key}};
  for (const auto& item : cases) {
    auto bad = options();
    bad.tls_certificate = item.certificate;
    bad.tls_key = item.key;
    auto made = HttpServer::create(bad, {});
    ASSERT_FALSE(made.ok());
    EXPECT_THAT(made.error().message, HasSubstr(item.names));
  }
}

}  // namespace
}  // namespace vitrine
