#include "server/http/security.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace vitrine {
namespace {

TEST(ApiKeys, WithoutANameTheKeyStaysItsOwnWhenLinesCome) {
  auto before = ApiKeys::parse("sk-one\nsk-two\n", "keys");
  auto after = ApiKeys::parse("# new\nsk-zero\nsk-one\nsk-two\n", "keys");
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(before->find("sk-two")->name, after->find("sk-two")->name);
  EXPECT_NE(after->find("sk-zero")->name, before->find("sk-one")->name);
}

TEST(ApiKeys, ReadsNamesAndWeights) {
  auto keys =
      ApiKeys::parse("# all of them\n\nsk-one\r\n  sk-two  team-b\nsk-three c 2.5\n", "keys");
  ASSERT_TRUE(keys.ok()) << keys.error().message;
  ASSERT_NE(keys->find("sk-one"), nullptr);
  EXPECT_EQ(keys->find("sk-one")->name, "key-456f1612");
  EXPECT_EQ(keys->find("sk-one")->rights.weight, 1);
  EXPECT_EQ(keys->find("sk-two")->name, "team-b");
  EXPECT_EQ(keys->find("sk-three")->rights.weight, 2.5);
  for (const char* wrong : {"", "sk-on", "sk-one ", "sk-onee", "SK-ONE", "team-b", "#"})
    EXPECT_EQ(keys->find(wrong), nullptr) << wrong;
}

TEST(ApiKeys, ReadsRights) {
  auto keys = ApiKeys::parse(
      "a=b==\nsk-2 ops role=operator\nsk-3 app 2 min_priority=-5 max_parallel_requests=4 "
      "rpm_limit=60 tpm_limit=100000\nsk-4 weight=0.5 role=user\nsk-5 low role=operator "
      "min_priority=7\n",
      "keys");
  ASSERT_TRUE(keys.ok()) << keys.error().message;
  auto rights = [&](const char* key) { return keys->find(key)->rights; };
  EXPECT_FALSE(rights("a=b==").is_operator);
  EXPECT_EQ(rights("a=b==").min_priority, 0);
  EXPECT_TRUE(rights("sk-2").is_operator);
  EXPECT_EQ(rights("sk-2").min_priority, -1000);
  EXPECT_EQ(rights("sk-3").weight, 2);
  EXPECT_EQ(rights("sk-3").min_priority, -5);
  EXPECT_EQ(rights("sk-3").max_parallel_requests, 4);
  EXPECT_EQ(rights("sk-3").rpm_limit, 60);
  EXPECT_EQ(rights("sk-3").tpm_limit, 100000);
  EXPECT_EQ(keys->find("sk-4")->name, "key-bb108040");
  EXPECT_EQ(rights("sk-4").weight, 0.5);
  EXPECT_EQ(rights("sk-5").min_priority, 7);
}

TEST(ApiKeys, ErrorsNameTheLineAndNeverTheKey) {
  struct Case {
    std::string text, says;
  };
  const Case cases[] = {
      {"secret1 a 1 extra", "line 1"},
      {"ok\nsecret1 a zero", "line 2"},
      {"secret1 a 0", "weight"},
      {"secret1 a -1", "weight"},
      {"secret1 a nan", "weight"},
      {"secret1 a inf", "weight"},
      {"secret1 a 1e9", "weight"},
      {"secret1 a 1x", "weight"},
      {"ok\n\nsecret1\x01", "line 3"},
      {"secret1\xff", "printable"},
      {"secret1 " + std::string(65, 'n'), "64"},
      {"secret1 a\n#\nsecret1 b", "line 3"},
      {"ok\nsecret1 a role=admin", "line 2: word 3: allowed"},
      {"secret1 a role=", "role=operator"},
      {"ok secret1=", "word 2"},
      {"ok a 1 secret1", "word 4"},
      {"secret1 a rpm_limit=0", "rpm_limit=1 to"},
      {"secret1 a rpm_limit=1.5", "rpm_limit"},
      {"secret1 a tpm_limit=-1", "tpm_limit"},
      {"secret1 a max_parallel_requests=99999999999", "max_parallel_requests"},
      {"secret1 a min_priority=-1001", "min_priority=-1000 to 1000"},
      {"secret1 a weight=nan", "weight"},
      {"secret1 a role=user b", "word 4"},
      {"secret1\nok key-5b11618c", "line 1: without a name the key is key-5b11618c"},
      {"", "no key"},
      {"# secret1\n\n", "no key"},
  };
  for (const auto& item : cases) {
    auto keys = ApiKeys::parse(item.text, "keys");
    ASSERT_FALSE(keys.ok()) << item.text;
    EXPECT_NE(keys.error().message.find(item.says), std::string::npos) << keys.error().message;
    EXPECT_EQ(keys.error().message.find("secret1"), std::string::npos) << keys.error().message;
  }
}

TEST(ApiKeys, FilesThatCannotBeRead) {
  auto folder = std::filesystem::temp_directory_path();
  EXPECT_FALSE(ApiKeys::load((folder / "no-such-file").string()).ok());
  EXPECT_FALSE(ApiKeys::load(folder.string()).ok());
}

TEST(ApiKeys, FromHeaders) {
  auto keys = ApiKeys::parse("sk-one\nsk-two", "keys");
  ASSERT_TRUE(keys.ok());
  struct Case {
    Headers headers;
    bool good;
  };
  const Case cases[] = {
      {{{"authorization", "Bearer sk-one"}}, true},
      {{{"authorization", "bearer  sk-two"}}, true},
      {{{"x-api-key", "sk-two"}}, true},
      {{}, false},
      {{{"authorization", "sk-one"}}, false},
      {{{"authorization", "Bearer"}}, false},
      {{{"authorization", "Bearer "}}, false},
      {{{"authorization", "Basic sk-one"}}, false},
      {{{"authorization", "Bearer sk-one, sk-two"}}, false},
      {{{"authorization", "Bearer wrong"}, {"x-api-key", "sk-one"}}, false},
      {{{"authorization", "Bearer sk-one"}, {"authorization", "Bearer sk-one"}}, false},
      {{{"x-api-key", "sk-one"}, {"x-api-key", "wrong"}}, false},
  };
  for (const auto& item : cases) {
    HttpRequest request;
    request.headers = item.headers;
    EXPECT_EQ(keys->authenticate(request) != nullptr, item.good)
        << (item.headers.empty() ? "" : item.headers[0].second);
  }
}

AccessRules rules(HttpOptions options, const std::string& bound) {
  auto made = AccessRules::make(options, bound);
  EXPECT_TRUE(made.ok());
  return *made;
}

TEST(AccessRules, Hosts) {
  HttpOptions named;
  named.allow_hosts = {"Models.example", "pinned.example:8443", "2001:db8::7"};
  auto loopback = rules(named, "127.0.0.1");
  for (const char* good :
       {"localhost", "LOCALHOST:80", "a.localhost", "127.0.0.1:8080", "127.9.9.9", "[::1]",
        "[::1]:8080", "[0:0:0:0:0:0:0:1]:1", "models.example", "MODELS.example:1234",
        "pinned.example:8443", "[2001:db8::7]:80"})
    EXPECT_TRUE(loopback.host_allowed(good)) << good;
  for (const char* bad : {"",
                          "evil.example",
                          "localhost.evil.example",
                          "notlocalhost",
                          "127.0.0.1.evil.example",
                          "127.1",
                          "2130706433",
                          "0x7f.0.0.1",
                          "10.0.0.1",
                          "0.0.0.0",
                          "pinned.example",
                          "pinned.example:1",
                          "localhost:",
                          "localhost:x",
                          "localhost:123456",
                          "localhost/x",
                          "localhost#",
                          "localhost?x",
                          "user@localhost",
                          "localhost localhost",
                          "[::1",
                          "::1",
                          "[::2]",
                          "[::1]x",
                          "models.example.",
                          "[2001:db8::8]"})
    EXPECT_FALSE(loopback.host_allowed(bad)) << bad;

  auto wildcard = rules({}, "0.0.0.0");
  EXPECT_TRUE(wildcard.host_allowed("192.168.1.5:8080"));
  EXPECT_TRUE(wildcard.host_allowed("[2001:db8::1]:8080"));
  EXPECT_TRUE(wildcard.host_allowed("localhost"));
  EXPECT_FALSE(wildcard.host_allowed("evil.example"));
  EXPECT_TRUE(rules({}, "::").host_allowed("10.1.2.3"));

  HttpOptions by_name;
  by_name.host = "gpu-box";
  EXPECT_TRUE(rules(by_name, "192.168.1.5").host_allowed("gpu-box:8080"));
  EXPECT_FALSE(rules(by_name, "192.168.1.5").host_allowed("other-box"));
}

TEST(AccessRules, Origins) {
  HttpOptions options;
  options.cors_origins = {"https://App.example", "http://localhost:3000/"};
  auto some = rules(options, "127.0.0.1");
  struct Case {
    const char *origin, *host;
    bool allowed;
    const char* cors;
  };
  const Case cases[] = {
      {"https://app.example", "localhost:8080", true, "https://app.example"},
      {"http://localhost:3000", "localhost:8080", true, "http://localhost:3000"},
      {"http://localhost:8080", "localhost:8080", true, ""},
      {"http://localhost", "localhost", true, ""},
      {"http://localhost:80", "localhost", true, ""},
      {"https://localhost", "localhost", false, ""},
      {"https://localhost", "localhost:443", false, ""},
      {"https://localhost:8080", "localhost:8080", false, ""},
      {"http://localhost:8081", "localhost:8080", false, ""},
      {"http://127.0.0.1:8080", "localhost:8080", false, ""},
      {"http://app.example", "localhost:8080", false, ""},
      {"https://app.example.evil", "localhost:8080", false, ""},
      {"https://app.example:444", "localhost:8080", false, ""},
      {"null", "localhost:8080", false, ""},
      {"", "localhost:8080", false, ""},
      {"file://", "localhost:8080", false, ""},
      {"chrome-extension://localhost:8080", "localhost:8080", false, ""},
      {"http://localhost:8080/", "localhost:8080", false, ""},
      {"http://a@localhost:8080", "localhost:8080", false, ""},
  };
  for (const auto& item : cases) {
    EXPECT_EQ(some.origin_allowed(item.origin, item.host), item.allowed) << item.origin;
    EXPECT_EQ(some.cors_origin(item.origin), item.cors) << item.origin;
  }
  HttpOptions open;
  open.cors_origins = {"*"};
  EXPECT_TRUE(rules(open, "127.0.0.1").origin_allowed("null", "localhost"));
  EXPECT_EQ(rules(open, "127.0.0.1").cors_origin("https://any.example"), "*");
}

TEST(AccessRules, OriginOfAServerThatSpeaksTls) {
  HttpOptions options;
  options.tls_certificate = "cert.pem";
  auto secure = rules(options, "127.0.0.1");
  for (const char* host : {"localhost", "localhost:443"})
    for (const char* origin : {"https://localhost", "https://localhost:443"})
      EXPECT_TRUE(secure.origin_allowed(origin, host)) << origin << " " << host;
  EXPECT_TRUE(secure.origin_allowed("https://localhost:8080", "localhost:8080"));
  EXPECT_FALSE(secure.origin_allowed("http://localhost", "localhost"));
  EXPECT_FALSE(secure.origin_allowed("http://localhost:8080", "localhost:8080"));
}

TEST(AccessRules, OptionsThatMakeNoSense) {
  for (const char* host : {"", "a b", "http://x", "x/y", "x:port"}) {
    HttpOptions options;
    options.allow_hosts = {host};
    auto made = AccessRules::make(options, "127.0.0.1");
    ASSERT_FALSE(made.ok()) << host;
    EXPECT_NE(made.error().message.find("allow-host"), std::string::npos);
  }
  for (const char* origin : {"", "app.example", "https://", "https://a/b", "://a"}) {
    HttpOptions options;
    options.cors_origins = {origin};
    EXPECT_FALSE(AccessRules::make(options, "127.0.0.1").ok()) << origin;
  }
}

}  // namespace
}  // namespace vitrine
