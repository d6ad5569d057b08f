// The heart of the program: plan, run, score, commit, again and again. Where the backend queues its
// work, a step runs while the results of the one before it are looked at.
//
// Engine thread only.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/batch.h"
#include "engine/loading.h"
#include "engine/records.h"
#include "engine/scheduler.h"

namespace vitrine {

class Stepper {
 public:
  // All arguments must outlive it. `books` is held while the scheduler plans and commits, not while
  // the model computes.
  Stepper(LoadedModel& loaded, Scheduler& scheduler, std::mutex& books, Records& records);

  // One step. False when there was nothing to do. When it throws, sequences may be anywhere between
  // two steps: abandon(), then end them all.
  bool step();
  void abandon() noexcept;  // the steps in flight
  std::uint64_t next_step() const { return step_; }
  // No step is planned that is not committed.
  bool settled() const { return in_flight_.empty(); }
  // The next step does not follow at once: the device may be idle before it.
  void paused() { follows_ = false; }

 private:
  // A step on its way.
  struct Flight {
    Batch batch;
    StepRecord record;
    Work work;  // of its products
    bool collected = false;
  };
  // Both return whether everything in flight must be committed before the next step is planned.
  bool plan(Flight& flight);
  bool launch(Flight& flight);
  void collect(Flight& flight);
  void commit(int keep);
  void describe(const Batch& batch, StepRecord& record) const;

  LoadedModel& m_;
  Scheduler& scheduler_;
  std::mutex& books_;
  Records& records_;
  std::vector<Flight> in_flight_;  // oldest first
  std::vector<Flight> spare_;      // emptied, for their memory
  std::uint64_t step_ = 0;         // steps launched
  bool follows_ = false;           // there was work all the time since the last step
  std::int64_t wall_from_ = 0;     // where the next step's wall_ns begins
};

}  // namespace vitrine
