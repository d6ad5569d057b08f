// A value that is replaced as a whole while other threads read it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace vitrine {

template <typename T>
class Swappable {
 public:
  // Stays what it is for as long as the caller holds it. Null until the first set().
  std::shared_ptr<T> get() const {
    std::lock_guard lock(mutex_);
    return value_;
  }
  void set(std::shared_ptr<T> value) {
    std::lock_guard lock(mutex_);
    value_.swap(value);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<T> value_;  // guarded by mutex_
};

}  // namespace vitrine
