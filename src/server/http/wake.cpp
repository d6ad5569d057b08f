#include "server/http/wake.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace vitrine {

WakeHub::WakeHub() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

WakeHub::~WakeHub() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void WakeHub::wake(const std::shared_ptr<WakeTarget>& target) {
  if (target->pending.exchange(true, std::memory_order_acq_rel)) return;
  bool first;
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    first = listed_.empty();
    listed_.push_back(target);
  }
  std::uint64_t one = 1;
  // Cannot fail but by a full counter, which wakes as well.
  if (first) (void)!::write(descriptor_, &one, sizeof one);
}

void WakeHub::drain() {
  std::uint64_t count;
  (void)!::read(descriptor_, &count, sizeof count);
  {
    std::lock_guard lock(mutex_);
    listed_.swap(taken_);
  }
  for (auto& target : taken_) {
    // Before the delivery: a call from now on lists the target again. An exchange, so that what was
    // written before a call that found it pending is seen by the woken coroutine.
    target->pending.exchange(false, std::memory_order_acq_rel);
    if (auto connection = target->connection.lock()) connection->deliver(target->number);
  }
  taken_.clear();
}

void WakeHub::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  listed_.clear();
}

}  // namespace vitrine
