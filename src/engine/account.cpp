#include "engine/account.h"

#include <fmt/format.h>

#include <algorithm>

namespace vitrine {

const char* finish_reason_name(FinishReason reason) {
  static constexpr const char* kNames[kFinishReasons] = {"stop", "length", "cancelled", "timeout",
                                                         "error"};
  return kNames[static_cast<int>(reason)];
}

const char* wait_name(Wait wait) {
  switch (wait) {
    case Wait::kNone:
      return "none";
    case Wait::kSeats:
      return "seats";
    case Wait::kPages:
      return "pages";
    case Wait::kPolicy:
      break;
  }
  return "policy";
}

const char* cache_miss_name(CacheMiss miss) {
  static constexpr const char* kNames[] = {"none",    "new",    "differs",
                                           "evicted", "window", "bypassed"};
  return kNames[static_cast<int>(miss)];
}

std::string CacheAccount::text() const {
  std::string got = fmt::format("{} of at most {} tokens came from the cache", cached, possible);
  switch (miss) {
    case CacheMiss::kNone:
      return got;
    case CacheMiss::kNew:
      return fmt::format("{}: no earlier request went on like this from token {}", got, position);
    case CacheMiss::kDiffers:
      return fmt::format("{}: token {} is {}, in the nearest earlier request it was {}", got,
                         position, here, there);
    case CacheMiss::kEvicted:
      return fmt::format("{}: what followed from token {} had to make room", got, position);
    case CacheMiss::kWindow:
      return fmt::format("{}: a sliding window before token {} is no longer held", got, position);
    case CacheMiss::kBypassed:
      return fmt::format("{}: it was not asked", got);
  }
  return got;
}

std::int64_t Account::written_until(std::int64_t now) const {
  if (!written) return stamps.ended;
  return written->done ? std::max(stamps.ended, written->last_ns.load()) : now;
}

void Account::take_written() {
  if (!written) return;
  stamps.first_write = written->first_ns, stamps.last_write = written->last_ns;
  bytes_out = written->bytes;
}

}  // namespace vitrine
