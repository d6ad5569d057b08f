#include "server/http/key_limits.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace vitrine {
namespace {

using Clock = KeyUse::Clock;

struct Bucket {
  double used = 0;
  Clock::time_point at{};
  void refill(std::int64_t per_minute, Clock::time_point now) {
    const double passed = std::chrono::duration<double>(now - at).count();
    used = std::max(0.0, used - passed * static_cast<double>(per_minute) / 60);
    at = now;
  }
  // Until that much more fits.
  double seconds_until(double more, std::int64_t per_minute) const {
    const auto limit = static_cast<double>(per_minute);
    return std::max(0.0, (used + more - limit) * 60 / limit);
  }
  std::int64_t left(std::int64_t per_minute) const {
    return std::max<std::int64_t>(0, per_minute - static_cast<std::int64_t>(std::ceil(used)));
  }
};

// As OpenAI writes it: "250ms", "7s", "6m0s".
std::string duration_text(double seconds) {
  const auto ms = static_cast<std::int64_t>(std::ceil(seconds * 1000));
  if (ms < 1000) return fmt::format("{}ms", ms);
  const std::int64_t whole = (ms + 999) / 1000;
  return whole < 60 ? fmt::format("{}s", whole) : fmt::format("{}m{}s", whole / 60, whole % 60);
}

}  // namespace

struct KeyCounters {
  std::mutex mutex;
  int running = 0;
  Bucket requests, tokens;
};

KeyUse::KeyUse(std::shared_ptr<KeyCounters> counters, std::string name, KeyRights rights)
    : counters_(std::move(counters)), name_(std::move(name)), rights_(rights) {}

OverLimit KeyUse::over(const char* limit, const std::string& found, double seconds) const {
  const auto wait = static_cast<std::int64_t>(std::clamp(std::ceil(seconds), 1.0, 86400.0));
  OverLimit out{
      {429,
       fmt::format("{} of the key \"{}\": found {}; come back in {} s", limit, name_, found, wait),
       "rate_limit_exceeded"},
      {{"Retry-After", std::to_string(wait)}}};
  return out;
}

std::optional<OverLimit> KeyUse::begin(Clock::time_point now) {
  std::lock_guard lock(counters_->mutex);
  KeyCounters& c = *counters_;
  const int most = rights_.max_parallel_requests, rpm = rights_.rpm_limit;
  if (most > 0 && c.running >= most)
    return over("max_parallel_requests",
                fmt::format("{} requests in work, allowed {}", c.running, most), 1);
  if (rpm > 0) {
    c.requests.refill(rpm, now);
    if (const double wait = c.requests.seconds_until(1, rpm); wait > 0)
      return over("rpm_limit",
                  fmt::format("{} requests within a minute, allowed {}",
                              static_cast<std::int64_t>(std::ceil(c.requests.used)) + 1, rpm),
                  wait);
    c.requests.used += 1;
  }
  ++c.running;
  running_ = true;
  return std::nullopt;
}

std::optional<OverLimit> KeyUse::take_tokens(std::int64_t tokens, Clock::time_point now) {
  const std::int64_t tpm = rights_.tpm_limit;
  if (tpm == 0) return std::nullopt;
  std::lock_guard lock(counters_->mutex);
  Bucket& bucket = counters_->tokens;
  bucket.refill(tpm, now);
  const std::int64_t asked = std::min(tokens, tpm) - tokens_;
  if (tokens_ > 0 && asked <= 0) return std::nullopt;
  if (const double wait = bucket.seconds_until(static_cast<double>(asked), tpm); wait > 0)
    return over("tpm_limit",
                fmt::format("{} tokens used and {} asked for within a minute, allowed {}",
                            static_cast<std::int64_t>(std::ceil(bucket.used)), asked, tpm),
                wait);
  bucket.used += static_cast<double>(asked);
  tokens_ += asked;
  return std::nullopt;
}

void KeyUse::settle_tokens(std::int64_t tokens, Clock::time_point now) {
  if (rights_.tpm_limit == 0) return;
  std::lock_guard lock(counters_->mutex);
  Bucket& bucket = counters_->tokens;
  bucket.refill(rights_.tpm_limit, now);
  bucket.used = std::max(0.0, bucket.used + static_cast<double>(tokens - tokens_));
  tokens_ = tokens;
}

void KeyUse::end() {
  std::lock_guard lock(counters_->mutex);
  if (running_) --counters_->running;
  running_ = false;
}

void KeyUse::add_headers(Headers& headers, Clock::time_point now) const {
  std::lock_guard lock(counters_->mutex);
  auto add = [&](const char* what, std::int64_t limit, Bucket& bucket) {
    if (limit == 0) return;
    bucket.refill(limit, now);
    auto name = [&](const char* part) { return fmt::format("x-ratelimit-{}-{}", part, what); };
    headers.emplace_back(name("limit"), std::to_string(limit));
    headers.emplace_back(name("remaining"), std::to_string(bucket.left(limit)));
    headers.emplace_back(name("reset"),
                         duration_text(bucket.seconds_until(static_cast<double>(limit), limit)));
  };
  add("requests", rights_.rpm_limit, counters_->requests);
  add("tokens", rights_.tpm_limit, counters_->tokens);
}

std::shared_ptr<KeyUse> KeyLimits::begin(const std::string& name, const KeyRights& rights,
                                         std::optional<OverLimit>& over, Clock::time_point now) {
  std::shared_ptr<KeyCounters> counters;
  {
    std::lock_guard lock(mutex_);
    auto& found = counters_[name];
    if (!found) found = std::make_shared<KeyCounters>();
    counters = found;
  }
  auto use = std::make_shared<KeyUse>(std::move(counters), name, rights);
  over = use->begin(now);
  return use;
}

}  // namespace vitrine
