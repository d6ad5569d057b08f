#include "engine/fair_queue.h"

#include <tuple>

namespace vitrine {

void FairQueue::enter(Sequence& s) {
  double least = -1;
  int mine = -1, unused = -1;
  for (int i = 0; i < static_cast<int>(tenants_.size()); ++i) {
    const Tenant& t = tenants_[i];
    if (t.name == s.request.tenant) mine = i;
    if (t.sequences > 0 && (least < 0 || t.served < least)) least = t.served;
    // What an idle tenant had is forgotten only when its place is wanted.
    if (t.sequences == 0 && tenants_.size() >= 1024) unused = i;
  }
  if (mine < 0) {
    if (unused < 0) unused = static_cast<int>(tenants_.size()), tenants_.emplace_back();
    tenants_[mine = unused] = {.name = s.request.tenant};
  }
  Tenant& t = tenants_[mine];
  t.weight = s.request.weight;
  if (t.sequences++ == 0) t.served = std::max(t.served, least);
  s.tenant = mine;
}

void FairQueue::leave(const Sequence& s) { --tenants_[s.tenant].sequences; }

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
  std::tuple<std::int64_t, bool, double, std::uint64_t> least;
  for (const auto& s : waiting_) {
    if (s->paused()) continue;
    std::int64_t level = s->request.priority - (now - s->submitted) / kAgeing;
    std::tuple key{std::max<std::int64_t>(level, top), !s->preempted, tenants_[s->tenant].served,
                   s->id};
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

}  // namespace vitrine
