// Makes calls of the system fail, by plan: the Nth call of a kind and, if asked, some after it. It
// replaces the functions themselves (operator new, pthread_create, mmap, recv, send, accept; of
// clock_gettime the time of day, which "fails" by jumping a year ahead or back), so the program is tested as it is and carries nothing for it. Link vt_faults into a test, or load
// libvt_faults.so into the real program with VITRINE_FAULTS=KIND:N[:COUNT] in the environment.
#pragma once

namespace vitrine {

enum class Fault { kAllocation, kThread, kMap, kRead, kWrite, kAccept, kClock };
inline constexpr int kFaults = 7;

// The nth call from now on fails (1: the next), and count - 1 calls after it.
void plan_fault(Fault kind, long nth, long count = 1);
// Ends the plan; how many calls have failed by it.
long end_fault(Fault kind);

// Calls of this thread are neither counted nor failed while it lives.
class FaultFree {
 public:
  FaultFree();
  ~FaultFree();
  FaultFree(const FaultFree&) = delete;
};

}  // namespace vitrine
