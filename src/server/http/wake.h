// From other threads to coroutines: any thread may wake, one I/O thread delivers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

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
};

// The list of targets to wake, and the descriptor that says it is not empty. wake() takes a mutex
// for an append and writes to the descriptor only when the list was empty; the two lists swap and
// keep their capacity, so nothing is allocated once they have grown.
class WakeHub {
 public:
  WakeHub();
  ~WakeHub();
  // An eventfd, or -1 when the machine gave none.
  int descriptor() const { return descriptor_; }

  void wake(const std::shared_ptr<WakeTarget>& target);
  // Delivers what is listed. One thread at a time.
  void drain();
  // From then on wake() does nothing.
  void close();

 private:
  const int descriptor_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<WakeTarget>> listed_;
  bool closed_ = false;
  std::vector<std::shared_ptr<WakeTarget>> taken_;  // of drain()
};

}  // namespace vitrine
