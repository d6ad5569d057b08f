// The beams of one request: sequences side by side that beam search (sampling/beam_search.h) moves texts between.
//
// Each beam is a sequence with a seat, an account and pages of its own; the first is the request's first choice, and
// choice i is answered with the i-th best text. They sit down together and are preempted together, so that none waits
// for a seat that its own request holds. Live texts have equal lengths: a beam whose row has been ranked rests until
// those of all others are; then commit moves the search on by one token (Scheduler::advance). A beam without a text
// rests too.
//
// Pages. The first child of a text stays where its parent was; another shares its parent's pages and copies the last
// one before it writes. After a preemption the first beam computes what all live texts begin with, and the others
// share that: so a request never needs more than pages() says.
//
// Engine thread only, under the engine's books lock.
#pragma once

#include <vector>

#include "sampling/beam_search.h"

namespace vitrine {

struct MemoryPlan;
struct Sequence;

class Beams {
 public:
  Beams(const BeamOptions& options, int max_output);

  BeamSearch search;
  std::vector<Sequence*>
      all;  // first() is the request's first choice; it has a text as long as any has
  std::vector<Sequence*> live;  // by index of search.live(): where that text is
  // Positions that the first one computes for all live texts, before the others share them; 0: they have their pages.
  int meet_at = 0;
  int common = 0;  // tokens of the output that agreed() has found

  Sequence& first() const { return *all.front(); }
  int size() const { return static_cast<int>(all.size()); }
  int returned() const { return search.options().returned; }
  bool is_live(const Sequence& s) const;

  // All rows of live texts have been ranked.
  bool ranked() const;
  // What step() and end_now() of the search need of the live texts.
  std::span<const BeamSearch::Row> rows();
  // Where the children of a step go: seats()[i] of search.live()[i]. Those that stay are where their parents are.
  std::span<Sequence* const> seat_children();
  std::span<Sequence* const> seats() const { return seats_; }
  // How many tokens of the output all texts have in common that can still be the answer, from `known` on.
  int agreed(int known) const;
  // How many positions all live texts begin with; less than all they have.
  int shared() const;

  // What readers of the answers ask. A reader that wants no more does not count.
  bool held() const;
  bool behind(int backlog) const;
  // All of them want no more; `stop`: one of them found what ends its text.
  bool unwanted(bool& stop) const;

  // Pages of a cache group that it may need at the same time.
  static int pages(const MemoryPlan& plan, std::size_t group, int beams, int prompt, int length);

 private:
  std::vector<BeamSearch::Row> rows_;
  std::vector<Sequence*> seats_;
};

}  // namespace vitrine
