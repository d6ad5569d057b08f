#include "engine/fair_queue.h"

#include <tuple>

namespace vitrine {

void FairQueue::enter(Sequence& s) {
  double most = 0, most_ever = 0;
  int mine = -1, unused = -1;
  for (int i = 0; i < static_cast<int>(tenants_.size()); ++i) {
    const Tenant& t = tenants_[i];
    if (t.name == s.request.tenant) mine = i;
    most_ever = std::max(most_ever, t.served);
    if (t.sequences > 0) most = std::max(most, t.served);
    // What an idle tenant had is forgotten only when its place is wanted.
    if (t.sequences == 0 && tenants_.size() >= 1024) unused = i;
  }
  if (mine < 0) {
    Tenant fresh{.name = s.request.tenant};
    if (unused < 0) unused = static_cast<int>(tenants_.size()), tenants_.emplace_back();
    tenants_[mine = unused] = std::move(fresh);
  }
  Tenant& t = tenants_[mine];
  t.weight = s.request.weight;
  t.served = std::max(t.served, (sequences_ > 0 ? most : most_ever) - kCredit);
  ++t.sequences, ++sequences_;
  s.tenant = mine;
}

void FairQueue::leave(const Sequence& s) {
  Tenant& t = tenants_[s.tenant];
  --t.sequences, --sequences_;
  if (s.slot >= 0) --t.seats;
}

void FairQueue::charge(const Sequence& s, int tokens) {
  Tenant& t = tenants_[s.tenant];
  t.served += tokens / t.weight;
}

Sequence* FairQueue::best(Clock::time_point now) const {
  int top = 0;
  bool any = false;
  for (const auto& s : waiting_) {
    top = any ? std::min(top, s->request.priority) : s->request.priority;
    any = true;
  }
  Sequence* best = nullptr;
  std::tuple<std::int64_t, double, double, std::int64_t, bool, std::uint64_t> least;
  for (const auto& s : waiting_) {
    if (s->paused()) continue;
    std::int64_t level = s->request.priority - (now - s->submitted) / kAgeing;
    level = std::max<std::int64_t>(level, top);
    std::tuple key{
        std::max<std::int64_t>(level, 0), load(*s), served(*s), level, !s->preempted, s->id};
    if (best == nullptr || key < least) best = s.get(), least = key;
  }
  return best;
}

std::unique_ptr<Sequence> FairQueue::pop(const Sequence* s) {
  auto it = std::find_if(waiting_.begin(), waiting_.end(),
                         [&](const auto& other) { return other.get() == s; });
  std::unique_ptr<Sequence> out = std::move(*it);
  waiting_.erase(it);
  return out;
}

bool FairQueue::may_take(const Sequence& wants, const Sequence& from) const {
  const Tenant &taker = tenants_[wants.tenant], &giver = tenants_[from.tenant];
  return wants.tenant != from.tenant &&
         wants.request.priority <= std::max(0, from.request.priority) &&
         (giver.seats - from.seats()) / giver.weight >=
             (taker.seats + wants.seats()) / taker.weight;
}

bool FairQueue::has_room(const Arrival& a, int most) const {
  int mine = a.mine, all = a.all;
  double weights = a.weight;
  for (const Tenant& t : tenants_) {
    all += t.sequences - t.seats;
    if (t.name == a.tenant)
      mine += t.sequences - t.seats;
    else if (t.sequences > 0)
      weights += t.weight;
  }
  return all + a.sequences <= most || mine == 0 ||
         mine + a.sequences <= most * (a.weight / weights);
}

void FairQueue::check(int seats) const {
  std::size_t sequences = 0;
  for (const Tenant& t : tenants_) {
    VT_CHECK(t.seats >= 0 && t.seats <= t.sequences, "{} seats, {} sequences", t.seats,
             t.sequences);
    sequences += t.sequences, seats -= t.seats;
  }
  VT_CHECK(sequences == sequences_ && seats == 0, "{} sequences, {} by tenant; {} seats too many",
           sequences_, sequences, seats);
}

}  // namespace vitrine
