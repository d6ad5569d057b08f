// The sequences that wait, who is next, and what each tenant has: seats (running sequences) and
// tokens. Engine thread only, or under the engine's books lock.
//
// Who is next:
//  1. Levels above 0. A level is the request's priority, lower first; waiting improves it by one
//     every kAgeing, at most to the best level that waits: so a low priority is never starved, and
//     among equals ageing changes nothing.
//  2. The tenant with the fewest seats for its weight.
//  3. The tenant that has had the fewest tokens for its weight. What it has missed counts up to
//     kCredit tokens, so a tenant that comes back is served first, but not for long.
//  4. Levels below 0: among what is a tenant's own, priority decides, never beyond.
//  5. Preempted ones before those that never ran.
//  6. First come, first served.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/sequence.h"

namespace vitrine {

class FairQueue {
 public:
  static constexpr std::chrono::seconds kAgeing{10};
  static constexpr double kCredit = 2048;

  // Enters the sequence's tenant in the books, once; leave() when the sequence has ended. Throws for
  // lack of memory, with nothing changed; never when the tenant has another sequence here.
  void enter(Sequence& s);
  void leave(const Sequence& s);
  // It has got a slot; it gives it back and has not ended.
  void seat(const Sequence& s) { ++tenants_[s.tenant].seats; }
  void unseat(const Sequence& s) { --tenants_[s.tenant].seats; }
  // Tokens were computed for it.
  void charge(const Sequence& s, int tokens);

  void reserve(std::size_t sequences) { waiting_.reserve(sequences); }
  void push(std::unique_ptr<Sequence> s) { waiting_.push_back(std::move(s)); }
  // The next one that is not paused; null when there is none.
  Sequence* best(Clock::time_point now) const;
  std::unique_ptr<Sequence> pop(const Sequence* s);
  const std::vector<std::unique_ptr<Sequence>>& waiting() const { return waiting_; }
  std::vector<std::unique_ptr<Sequence>>& waiting() { return waiting_; }
  int size() const { return static_cast<int>(waiting_.size()); }
  bool empty() const { return waiting_.empty(); }

  // Of the sequence's tenant: tokens, and seats, for its weight.
  double served(const Sequence& s) const { return tenants_[s.tenant].served; }
  double load(const Sequence& s) const {
    return tenants_[s.tenant].seats / tenants_[s.tenant].weight;
  }
  // Whether `wants` may take the seat of another tenant's sequence: if that tenant then still has
  // at least as many for its weight, so that no seat goes to and fro. A priority above 0 takes none
  // from those before it. The beams of a request count as so many seats.
  bool may_take(const Sequence& wants, const Sequence& from) const;
  // More than one tenant has been here.
  bool shared() const { return tenants_.size() > 1; }

  // Sequences that ask to wait, and those that came before but are not entered yet.
  struct Arrival {
    std::string_view tenant;
    double weight = 1;
    int sequences = 1;
    int mine = 0, all = 0;  // before it: the tenant's, everybody's
  };
  // Whether they may, where `most` sequences have room. One tenant alone may fill it all; others
  // then still get their share by weight, and one request each at least. So with k tenants of equal
  // weight no more than about most * (1 + ln k) wait.
  bool has_room(const Arrival& arrival, int most) const;
  void check(int seats) const;  // aborts when the books do not agree with `seats` taken

 private:
  struct Tenant {
    std::string name;
    double weight = 1;
    double served = 0;  // tokens / weight
    int sequences = 0;  // in the engine
    int seats = 0;      // of these, with a slot
  };
  std::vector<Tenant> tenants_;
  std::vector<std::unique_ptr<Sequence>> waiting_;
  std::size_t sequences_ = 0;  // of all tenants
};

}  // namespace vitrine
