// From other threads to coroutines: any thread may wake, one I/O thread delivers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace vitrine {

class Wakeable {
 public:
  virtual ~Wakeable() = default;
  virtual void deliver(std::uint64_t number) = 0;
};

// One waker's target: exchange `number` of a connection, which may be gone by now.
struct WakeTarget {
  std::weak_ptr<Wakeable> connection;
  std::uint64_t number;
  std::atomic<bool> pending{false};  // is in the list; further calls have nothing to do
  std::shared_ptr<WakeTarget> next;  // in the list
};

// The list of targets to wake, and the descriptor that says it is not empty. wake() takes a mutex
// for an append and writes to the descriptor only when the list was empty. The list is linked
// through the targets, so nothing is ever allocated.
class WakeHub {
 public:
  WakeHub();
  ~WakeHub();
  // An eventfd, or -1 when the machine gave none.
  int descriptor() const { return descriptor_; }

  void wake(const std::shared_ptr<WakeTarget>& target) noexcept;
  // Makes the descriptor readable, though there may be nothing to deliver.
  void nudge() noexcept;
  // Delivers what is listed. One thread at a time. When a delivery throws, it and those after it
  // stay listed, and the descriptor readable.
  void drain();
  // From then on wake() does nothing.
  void close();

 private:
  void put_back(std::shared_ptr<WakeTarget> first, WakeTarget* last) noexcept;

  const int descriptor_;
  std::mutex mutex_;
  std::shared_ptr<WakeTarget> first_;
  WakeTarget* last_ = nullptr;
  bool closed_ = false;
};

}  // namespace vitrine
