// Limits of API keys: requests at a time, requests and tokens per minute. The counters are kept by
// the name of the key and outlive what the keys' file says at a time. Thread-safe.
//
// A rate is a bucket that holds what a minute allows and refills evenly: that much may come at
// once. A request takes one of the requests, and as many tokens as it is expected to cost; when it
// has ended, what it did cost is known and takes their place. That may leave the bucket below
// empty: nothing is taken then until it has refilled.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/http/http.h"

namespace vitrine {

// Which limit a request exceeds.
struct OverLimit {
  HttpError error;  // 429, "rate_limit_exceeded"
  Headers headers;  // Retry-After
};

struct KeyCounters;

// A request's part in the counters of its key. Ends with it.
class KeyUse {
 public:
  using Clock = std::chrono::steady_clock;
  KeyUse(std::shared_ptr<KeyCounters> counters, std::string name, KeyRights rights);
  ~KeyUse() { end(); }
  KeyUse(const KeyUse&) = delete;

  // Before any work: what it is expected to cost in all, of which only what was not taken before is taken now.
  // More than a minute allows counts as that.
  std::optional<OverLimit> take_tokens(std::int64_t tokens, Clock::time_point now = Clock::now());
  // What it did cost.
  void settle_tokens(std::int64_t tokens, Clock::time_point now = Clock::now());
  // The request is answered: another one may begin.
  void end();
  // OpenAI's x-ratelimit-*, of the rates that are limited.
  void add_headers(Headers& headers, Clock::time_point now = Clock::now()) const;

 private:
  friend class KeyLimits;
  std::optional<OverLimit> begin(Clock::time_point now);
  OverLimit over(const char* limit, const std::string& found, double seconds) const;

  const std::shared_ptr<KeyCounters> counters_;
  const std::string name_;
  const KeyRights rights_;
  // Guarded by the counters' mutex.
  bool running_ = false;
  std::int64_t tokens_ = 0;  // taken
};

class KeyLimits {
 public:
  // Counts a request of the key `name`. The use is complete unless `over` is set.
  std::shared_ptr<KeyUse> begin(const std::string& name, const KeyRights& rights,
                                std::optional<OverLimit>& over,
                                KeyUse::Clock::time_point now = KeyUse::Clock::now());

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<KeyCounters>> counters_;  // guarded by mutex_
};

}  // namespace vitrine
