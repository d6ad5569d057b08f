#include "draft/loss_ledger.h"

#include <algorithm>

namespace vitrine {
namespace {

// Both sums fade, halved every 1024 steps: hours without a loss are no credit for a bad minute.
constexpr double kFade = 0.99932331;
// The first steps may lose as if as many had been run before.
constexpr int kStart = 32;

constexpr double kOverdraft = 1.25;

}  // namespace

double LossLedger::room(double plain) const {
  return kOverdraft * share() * (time_ > 0 ? time_ : kStart * plain) - lost_;
}

void LossLedger::step(double ns, double lost, double plain) {
  if (!on()) {
    time_ += ns;
    if (--wait_left_ > 0) return;
    probing_ = true;
    probe_left_ = kFirstWait;
    probe_lost_ = probe_time_ = 0;
    return;
  }
  if (time_ == 0) time_ = kStart * plain;
  time_ = time_ * kFade + ns;
  lost_ = std::max(0.0, lost_ * kFade + lost);
  if (lost_ > share() * time_) return turn_off();
  if (!probing_) return;
  probe_lost_ += lost;
  probe_time_ += ns;
  if (--probe_left_ > 0) return;
  if (probe_lost_ > kProbeMayLose * probe_time_) return turn_off();
  probing_ = false;
  if (probe_lost_ < 0) wait_ = kFirstWait;
}

void LossLedger::turn_off() {
  ++times_off_;
  wait_left_ = wait_;
  wait_ = std::min(2 * wait_, kLongestWait);
  lost_ = time_ = 0;
}

}  // namespace vitrine
