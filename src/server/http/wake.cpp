#include "server/http/wake.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace vitrine {

WakeHub::WakeHub() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

WakeHub::~WakeHub() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void WakeHub::wake(const std::shared_ptr<WakeTarget>& target) noexcept {
  if (target->pending.exchange(true, std::memory_order_acq_rel)) return;
  bool first;
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    first = !first_;
    (first ? first_ : last_->next) = target;
    last_ = target.get();
  }
  if (first) nudge();
}

void WakeHub::nudge() noexcept {
  std::uint64_t one = 1;
  // Cannot fail but by a full counter, which wakes as well.
  (void)!::write(descriptor_, &one, sizeof one);
}

void WakeHub::drain() {
  std::uint64_t count;
  (void)!::read(descriptor_, &count, sizeof count);
  std::shared_ptr<WakeTarget> rest;
  WakeTarget* last = nullptr;
  {
    std::lock_guard lock(mutex_);
    rest = std::move(first_);
    last = last_;
  }
  while (rest) {
    std::shared_ptr<WakeTarget> target = std::move(rest);
    rest = std::move(target->next);
    // Before the delivery: a call from now on lists the target again. An exchange, so that what was
    // written before a call that found it pending is seen by the woken coroutine.
    target->pending.exchange(false, std::memory_order_acq_rel);
    try {
      if (auto connection = target->connection.lock()) connection->deliver(target->number);
    } catch (...) {
      put_back(std::move(rest), last);
      wake(target);
      nudge();
      throw;
    }
  }
}

// Before what was listed meanwhile.
void WakeHub::put_back(std::shared_ptr<WakeTarget> first, WakeTarget* last) noexcept {
  if (!first) return;
  std::lock_guard lock(mutex_);
  if (first_)
    last->next = std::move(first_);
  else
    last_ = last;
  first_ = std::move(first);
}

void WakeHub::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  while (first_) first_ = std::move(first_->next);  // one by one: not a chain of destructors
}

}  // namespace vitrine
