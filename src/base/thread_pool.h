// A fixed set of worker threads for compute. The calling thread works too.
//
// Built for many short jobs in a row: a job is published by one atomic store, items are taken by
// one atomic add, and workers spin for a moment between jobs before they sleep. A worker that is
// not running when a job starts delays nothing: the job ends when its items are done. run() may be
// called from one thread at a time and must not be nested.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace vitrine {

class ThreadPool {
 public:
  // `threads` in all, the caller included; at least 1. Throws std::system_error when the system
  // cannot start that many.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls f(item, worker) for every item in [0, items), in any order; worker is in [0, threads()).
  template <typename F>
  void run(std::int64_t items, F&& f) {
    run_erased(
        items,
        [](void* context, std::int64_t item, int worker) {
          (*static_cast<std::remove_reference_t<F>*>(context))(item, worker);
        },
        const_cast<void*>(static_cast<const void*>(&f)));
  }

  // Splits [0, n) into contiguous ranges of about `grain` and calls f(begin, end) for each.
  template <typename F>
  void run_ranges(std::int64_t n, std::int64_t grain, F&& f) {
    if (n <= 0) return;
    std::int64_t pieces = (n + grain - 1) / grain;
    run(pieces, [&](std::int64_t i, int) {
      std::int64_t begin = i * grain, end = begin + grain < n ? begin + grain : n;
      f(begin, end);
    });
  }

  // CPUs that this process may run on.
  static int available_cpus();

 private:
  using Job = void (*)(void* context, std::int64_t item, int worker);
  void run_erased(std::int64_t items, Job job, void* context);
  bool work(int worker);
  void stop();
  void worker_loop(int worker);

  // Number of items in the upper half, next item in the lower: one atomic add takes an item and
  // tells whether it exists. job_ and context_ do not change while an item runs, because run()
  // waits for all items.
  std::atomic<std::uint64_t> ticket_{0};
  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<std::uint32_t> done_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  Job job_ = nullptr;
  void* context_ = nullptr;
  std::vector<std::thread> workers_;
};

}  // namespace vitrine
