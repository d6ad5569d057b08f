#include "server/http/workers.h"

#include <algorithm>
#include <chrono>

namespace vitrine {

void Workers::post(const std::string& tenant, double weight, Job job) {
  std::lock_guard lock(mutex_);
  auto [at, added] = queues_.try_emplace(tenant);
  try {
    at->second.jobs.push_back(std::move(job));
  } catch (...) {
    if (added) queues_.erase(at);
    throw;
  }
  at->second.weight = weight;
  // Time that was not used before counts for nothing: it begins with the least of the others.
  if (added) {
    double least = -1;
    for (const auto& [name, queue] : queues_)
      if (&queue != &at->second) least = least < 0 ? queue.used : std::min(least, queue.used);
    at->second.used = std::max(least, 0.0);
  }
  changed_.notify_one();
}

Workers::Queues::iterator Workers::next() {
  auto best = queues_.end();
  for (auto at = queues_.begin(); at != queues_.end(); ++at) {
    const Queue& queue = at->second;
    if (queue.jobs.empty()) continue;
    if (!at->first.empty() && queue.working >= std::max(1, threads_ - 1)) continue;
    if (best == queues_.end() || queue.used < best->second.used) best = at;
  }
  return best;
}

void Workers::run() {
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  for (;;) {
    auto at = next();
    if (at == queues_.end()) {
      if (closed_ && queues_.empty()) return;
      changed_.wait(lock);
      continue;
    }
    Queue& queue = at->second;
    Job job = std::move(queue.jobs.front());
    queue.jobs.pop_front();
    ++queue.working;
    lock.unlock();
    const auto began = Clock::now();
    job();
    job = nullptr;
    const double took = std::chrono::duration<double>(Clock::now() - began).count();
    lock.lock();
    --queue.working;
    queue.used += took / queue.weight;
    if (queue.idle()) queues_.erase(at);
    // One of this key may have waited for a thread, and at the end all threads leave.
    changed_.notify_all();
  }
}

void Workers::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace vitrine
