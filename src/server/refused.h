// The last requests that were refused before the engine had them, for those who ask why. Thread-safe.
#pragma once

#include <deque>
#include <mutex>
#include <vector>

#include "engine/account.h"

namespace vitrine {

class Refused {
 public:
  static constexpr std::size_t kMost = 64;

  // With its stamps, and the reason in `error`.
  void add(Account account) {
    std::lock_guard lock(mutex_);
    accounts_.push_back(std::move(account));
    if (accounts_.size() > kMost) accounts_.pop_front();
  }
  std::vector<Account> all() const {
    std::lock_guard lock(mutex_);
    return {accounts_.begin(), accounts_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::deque<Account> accounts_;  // guarded by mutex_
};

}  // namespace vitrine
