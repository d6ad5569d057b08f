#include "base/thread_pool.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace vitrine {
namespace {

constexpr auto kSpin = std::chrono::microseconds(100);

}  // namespace

ThreadPool::ThreadPool(int threads) {
  VT_CHECK(threads >= 1 && threads <= 1024, "{} threads", threads);
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { worker_loop(i); });
  } catch (...) {
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stop_.store(true);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& t : workers_) t.join();
}

bool ThreadPool::work(int worker) {
  bool any = false;
  while (true) {
    std::uint64_t seen = ticket_.load(std::memory_order_relaxed);
    if (static_cast<std::uint32_t>(seen) >= (seen >> 32)) return any;
    std::uint64_t mine = ticket_.fetch_add(1, std::memory_order_acq_rel);
    std::uint64_t item = static_cast<std::uint32_t>(mine);
    if (item >= (mine >> 32)) return any;
    job_(context_, static_cast<std::int64_t>(item), worker);
    done_.fetch_add(1, std::memory_order_release);
    any = true;
  }
}

void ThreadPool::worker_loop(int worker) {
  std::uint32_t epoch = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    work(worker);
    auto start = std::chrono::steady_clock::now();
    std::uint32_t now = epoch_.load(std::memory_order_acquire);
    for (int i = 1; now == epoch; ++i) {
      _mm_pause();
      now = epoch_.load(std::memory_order_acquire);
      if (i % 256 == 0 && std::chrono::steady_clock::now() - start > kSpin) {
        sleepers_.fetch_add(1);
        epoch_.wait(epoch);
        sleepers_.fetch_sub(1);
        now = epoch_.load(std::memory_order_acquire);
      }
    }
    epoch = now;
  }
}

void ThreadPool::run_erased(std::int64_t items, Job job, void* context) {
  if (items <= 0) return;
  if (items == 1 || workers_.empty()) {
    for (std::int64_t i = 0; i < items; ++i) job(context, i, 0);
    return;
  }
  VT_CHECK(items < (std::int64_t{1} << 31), "{} items", items);
  job_ = job;
  context_ = context;
  done_.store(0, std::memory_order_relaxed);
  ticket_.store(static_cast<std::uint64_t>(items) << 32, std::memory_order_release);
  epoch_.fetch_add(1);
  if (sleepers_.load() > 0) epoch_.notify_all();
  work(0);
  for (int i = 1; done_.load(std::memory_order_acquire) != static_cast<std::uint32_t>(items); ++i) {
    _mm_pause();
    if (i % 4096 == 0) std::this_thread::yield();
  }
}

int ThreadPool::available_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace vitrine
