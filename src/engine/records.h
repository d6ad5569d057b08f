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
  // Copies of those from step `from` on that are kept, at most `most`, oldest first.
  std::vector<StepRecord> since(std::uint64_t from, std::size_t most) const;
  std::vector<StepRecord> of(std::uint64_t sequence) const;  // in which it had an entry
  std::uint64_t steps() const;                               // ever

 private:
  mutable std::mutex mutex_;
  std::uint64_t oldest() const { return steps_ > kKeptRecords ? steps_ - kKeptRecords : 0; }
  std::vector<StepRecord> ring_;
  std::uint64_t steps_ = 0;
};

}  // namespace vitrine
