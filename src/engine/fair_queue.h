// The sequences that wait, and who is next. Engine thread only.
//
//  1. Level: the request's priority, lower first. Waiting improves it by one every kAgeing, at most
//     to the best level that waits: so a low priority is never starved, and among equals ageing
//     changes nothing.
//  2. Preempted ones before those that never ran.
//  3. The tenant that has had the fewest tokens for its weight (start-time fair queueing: a tenant
//     that comes back starts at the least of those that are active).
//  4. First come, first served.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/sequence.h"

namespace vitrine {

class FairQueue {
 public:
  static constexpr std::chrono::seconds kAgeing{10};

  explicit FairQueue(int expected) { waiting_.reserve(expected); }
  // Enters the sequence's tenant in the books, once; leave() when the sequence has ended.
  void enter(Sequence& s);
  void leave(const Sequence& s);
  // Tokens were computed for it.
  void charge(const Sequence& s, int tokens);

  void push(std::unique_ptr<Sequence> s) { waiting_.push_back(std::move(s)); }
  // The next one that is not paused; null when there is none.
  Sequence* best(Clock::time_point now) const;
  std::unique_ptr<Sequence> pop(const Sequence* s);
  const std::vector<std::unique_ptr<Sequence>>& waiting() const { return waiting_; }
  std::vector<std::unique_ptr<Sequence>>& waiting() { return waiting_; }
  int size() const { return static_cast<int>(waiting_.size()); }
  bool empty() const { return waiting_.empty(); }

 private:
  struct Tenant {
    std::string name;
    double weight = 1;
    double served = 0;  // tokens / weight
    int sequences = 0;  // in the engine
  };
  std::vector<Tenant> tenants_;
  std::vector<std::unique_ptr<Sequence>> waiting_;
};

}  // namespace vitrine
