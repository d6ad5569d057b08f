// For tests: an engine whose parts and sequences can be reached.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <utility>

#include "engine/admission.h"
#include "engine/loading.h"
#include "engine/records.h"
#include "engine/scheduler.h"
#include "engine/stepper.h"

namespace vitrine::test {

class EngineParts {
 public:
  explicit EngineParts(std::unique_ptr<LoadedModel> loaded)
      : loaded_(std::move(loaded)),
        records_(loaded_->plan.sequences, loaded_->plan.trace_bytes),
        scheduler_(loaded_->plan, loaded_->options, loaded_->draft.get()),
        admission_(loaded_->plan, loaded_->info, scheduler_.hasher(),
                   loaded_->file->generation().eos_ids),
        stepper_(*loaded_, scheduler_, books_, records_) {}

  // The first choice; the others are its forks.
  Sequence* add(Request r) {
    EXPECT_TRUE(admission_.check(r).ok());
    auto s = admission_.make(std::move(r));
    s->id = ++ids_;
    for (auto& f : s->forks) f->id = ++ids_;
    Sequence* out = s.get();
    scheduler_.add(std::move(s));
    return out;
  }
  // Checks the books of the pages after every step.
  bool step() {
    bool worked = stepper_.step();
    scheduler_.check_integrity();
    return worked;
  }
  LoadedModel& loaded() { return *loaded_; }
  const Scheduler& scheduler() const { return scheduler_; }
  std::vector<StepRecord> records() const { return records_.since(0, kKeptRecords); }

 private:
  std::unique_ptr<LoadedModel> loaded_;
  Records records_;
  std::mutex books_;
  Scheduler scheduler_;
  Admission admission_;
  Stepper stepper_;
  std::uint64_t ids_ = 0;
};

}  // namespace vitrine::test
