// What the scheduler has changed and nobody has written down yet: who got a place, who lost it, which pages
// moved, who ended; in the order in which it happened. Records writes it down at the end of each plan and
// commit, under the same lock.
//
// Off, it notes nothing. Changes of pages are noted only while somebody watches; where there were some that
// are not noted, it says so.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/account.h"
#include "trace/events.h"

namespace vitrine {

class Changes {
 public:
  // Room for `most_pages` changes of pages at a time; more are lost.
  void turn_on(int sequences, std::size_t most_pages);
  void watch(bool on) { watched_ = on && on_; }
  bool watched() const { return watched_; }

  // Whether changes of pages are to be told: ask where there are some. Where not, they are lost.
  bool pages_wanted() {
    if (watched_) [[unlikely]]
      return true;
    lost_ = true;
    return false;
  }
  void page(const PageChange& change);
  void admitted(const Admitted& a);
  void preempted(const Preempted& p);
  void ended(const Account& account) noexcept;

 private:
  friend class Records;
  // A plan is told in parts, in each of which all that lost their places come first.
  struct Part {
    std::size_t preempted = 0, admitted = 0, pages = 0;  // its ends in the lists
  };
  template <typename T>
  void note(std::vector<T>& list, const T& item);
  bool empty() const {
    return preempted_.empty() && admitted_.empty() && pages_.empty() && ended_.empty();
  }
  void clear();

  bool on_ = false, watched_ = false;
  bool lost_ = false;
  std::vector<Preempted> preempted_;
  std::vector<Admitted> admitted_;
  std::vector<PageChange> pages_;
  std::vector<Part> parts_;  // those that are complete
  std::vector<EndEvent> ended_;
};

}  // namespace vitrine
