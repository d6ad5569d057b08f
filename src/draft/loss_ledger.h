// What speculation has lost, and whether it may go on: it must never make the engine noticeably slower
// than it is without, whatever the text and the load.
//
// The policy drafts where it expects to win; it may expect wrongly. So each step that speculated is
// held against what its tokens would have cost without, and the losses are summed (gains make up for
// earlier losses, not for later ones). When they are above 2 % of the time of decoding, speculation is
// off: the engine runs as if it were not there. It is tried again after 64 steps, then after 128, and
// so on up to 4096. Such a probe may lose 1 % of the time that has passed while it was off, and ends
// after 64 steps if it has lost 1 % of theirs.
#pragma once

#include <cstdint>

namespace vitrine {

class LossLedger {
 public:
  static constexpr double kMayLose = 0.02, kProbeMayLose = 0.01;
  static constexpr int kFirstWait = 64, kLongestWait = 4096;

  bool on() const { return wait_left_ == 0; }
  // A step that decoded took `ns`, of which `lost` (below 0: won) by speculation; `plain` is what a
  // step without takes.
  void step(double ns, double lost, double plain);
  // What a step may lose at worst: a little more than would turn it off.
  double room(double plain) const;

  std::uint64_t times_off() const { return times_off_; }
  int steps_to_probe() const { return wait_left_; }
  double lost_ns() const { return lost_; }  // of time_ns(); both fade with time
  double time_ns() const { return time_; }

 private:
  void turn_off();

  double share() const { return probing_ ? kProbeMayLose : kMayLose; }

  double lost_ = 0, time_ = 0;
  bool probing_ = false;
  int probe_left_ = 0;                      // steps until it is decided what came of it
  double probe_lost_ = 0, probe_time_ = 0;  // of the probe alone
  int wait_ = kFirstWait;                   // steps to be off next time
  int wait_left_ = 0;
  std::uint64_t times_off_ = 0;
};

}  // namespace vitrine
