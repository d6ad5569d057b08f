// What sequences wait for, for their lives (engine/life.h).
#include "base/process_clock.h"
#include "engine/scheduler.h"

namespace vitrine {

// Those that came since the last step are behind the one that does not get in.
void Scheduler::wait_behind(const Sequence& first, Clock::time_point now) {
  for (const auto& s : queue_.waiting())
    if (s.get() != &first && s->account.life.unseen())
      s->account.life.turn(process_ns(now), LifeKind::kQueue, LifeCause::kBehind, first.id);
}

// Why those that have a seat have no rows in the step.
void Scheduler::list_absent(Batch& batch, Clock::time_point now) {
  for (const auto& s : running_) {
    if (s->slot < 0 || s->finished || s->planned == plans_) continue;
    Absent out{.sequence = s->id, .slot = s->slot};
    if (s->paused())
      out.kind = LifeKind::kPaused, out.cause = s->held() ? LifeCause::kHeld : LifeCause::kReader;
    else if (s->left() <= 0)
      continue;  // all it will ever draw is on its way
    else
      out.cause = s->resting             ? LifeCause::kBeams
                  : s->waits()           ? LifeCause::kHost
                  : s->starved == plans_ ? LifeCause::kPages
                                         : LifeCause::kBudget;
    batch.absent.push_back(out);
    // There is no step whose end would tell.
    if (batch.empty() && s->in_flight == 0)
      s->account.life.turn(process_ns(now), out.kind, out.cause);
  }
}

}  // namespace vitrine
