#include "server/http/key_limits.h"

#include <gtest/gtest.h>

namespace vitrine {
namespace {

using namespace std::chrono_literals;

const KeyUse::Clock::time_point kStart{1h};

std::string header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return "";
}

struct Limits {
  std::shared_ptr<KeyUse> begin(KeyUse::Clock::time_point now = kStart, const char* name = "ann") {
    over.reset();
    return limits.begin(name, rights, over, now);
  }
  KeyLimits limits;
  KeyRights rights;
  std::optional<OverLimit> over;
};

TEST(KeyLimits, RequestsAtATime) {
  Limits l;
  l.rights.max_parallel_requests = 2;
  auto first = l.begin(), second = l.begin();
  auto third = l.begin();
  ASSERT_TRUE(l.over);
  EXPECT_EQ(l.over->error.status, 429);
  EXPECT_EQ(l.over->error.code, "rate_limit_exceeded");
  EXPECT_EQ(l.over->error.message,
            "max_parallel_requests of the key \"ann\": found 2 requests in work, allowed 2; come "
            "back in 1 s");
  third.reset();  // it never began
  EXPECT_TRUE((l.begin(), l.over));
  l.begin(kStart, "bob");
  EXPECT_FALSE(l.over) << "each key has its own";
  first->end();
  auto next = l.begin();
  EXPECT_FALSE(l.over);
  first.reset();
  EXPECT_TRUE((l.begin(), l.over)) << "an end counts once";
}

TEST(KeyLimits, RequestsPerMinute) {
  Limits l;
  l.rights.rpm_limit = 3;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE((l.begin(), !l.over));
  auto use = l.begin();
  ASSERT_TRUE(l.over);
  EXPECT_EQ(l.over->error.message,
            "rpm_limit of the key \"ann\": found 4 requests within a minute, allowed 3; come back "
            "in 20 s");
  EXPECT_EQ(header(l.over->headers, "Retry-After"), "20");
  Headers headers;
  use->add_headers(headers, kStart);
  EXPECT_EQ(header(headers, "x-ratelimit-limit-requests"), "3");
  EXPECT_EQ(header(headers, "x-ratelimit-remaining-requests"), "0");
  EXPECT_EQ(header(headers, "x-ratelimit-reset-requests"), "1m0s");
  EXPECT_EQ(header(headers, "x-ratelimit-limit-tokens"), "");
  EXPECT_TRUE((l.begin(kStart + 19s), l.over));
  EXPECT_TRUE((l.begin(kStart + 20s), !l.over)) << "a third of a minute refills one";
  EXPECT_TRUE((l.begin(kStart + 21s), l.over));
  // The limit may change while the counters stay, as when keys are read again.
  l.rights.rpm_limit = 6;
  EXPECT_TRUE((l.begin(kStart + 21s), !l.over));
}

TEST(KeyLimits, TokensPerMinute) {
  Limits l;
  l.rights.tpm_limit = 600;
  auto first = l.begin(), second = l.begin();
  EXPECT_FALSE(first->take_tokens(500, kStart));
  auto over = second->take_tokens(200, kStart);
  ASSERT_TRUE(over);
  EXPECT_EQ(
      over->error.message,
      "tpm_limit of the key \"ann\": found 500 tokens used and 200 asked for within a minute, "
      "allowed 600; come back in 10 s");
  first->settle_tokens(100, kStart);  // it stopped early
  first->settle_tokens(100, kStart);
  EXPECT_FALSE(second->take_tokens(200, kStart));
  second->settle_tokens(1100, kStart);  // it went on for long
  auto third = l.begin();
  over = third->take_tokens(1, kStart);
  ASSERT_TRUE(over);
  EXPECT_EQ(header(over->headers, "Retry-After"), "61");
  Headers headers;
  third->add_headers(headers, kStart + 61s);
  EXPECT_EQ(header(headers, "x-ratelimit-remaining-tokens"), "10");
  // More than a minute allows can be had when nothing else was.
  EXPECT_TRUE(third->take_tokens(5000, kStart + 61s));
  EXPECT_FALSE(third->take_tokens(5000, kStart + 300s));
}

// Work that is taken up piece by piece: each piece says what all until then is expected to cost.
TEST(KeyLimits, OfTokensThatAreTakenInPieces) {
  Limits l;
  l.rights.tpm_limit = 600;
  auto use = l.begin();
  for (std::int64_t all : {200, 300, 250, 400}) EXPECT_FALSE(use->take_tokens(all, kStart)) << all;
  EXPECT_TRUE(use->take_tokens(1000, kStart + 1s) == std::nullopt) << "no more than a minute's";
  use->settle_tokens(350, kStart + 1s);
  Headers headers;
  use->add_headers(headers, kStart + 1s);
  EXPECT_EQ(header(headers, "x-ratelimit-remaining-tokens"), "260");
}

}  // namespace
}  // namespace vitrine
