// The records of the last steps, in a ring. Thread-safe.
#pragma once

#include <mutex>
#include <vector>

#include "engine/step_record.h"

namespace vitrine {

class Records {
 public:
  explicit Records(int sequences);
  // Steps come in order, from 0 on. Takes the record and leaves an old one, for its memory.
  void add(StepRecord& record);
  std::vector<StepRecord> list() const;  // oldest first
  std::uint64_t steps() const;           // ever

 private:
  mutable std::mutex mutex_;
  std::vector<StepRecord> ring_;
  std::uint64_t steps_ = 0;
};

}  // namespace vitrine
