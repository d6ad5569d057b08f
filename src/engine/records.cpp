#include "engine/records.h"

#include <utility>

namespace vitrine {

Records::Records(int sequences) : ring_(kKeptRecords) {
  for (StepRecord& r : ring_) r.entries.reserve(sequences);
}

void Records::add(StepRecord& record) {
  std::lock_guard lock(mutex_);
  std::swap(ring_[record.step % kKeptRecords], record);
  ++steps_;
}

std::vector<StepRecord> Records::list() const {
  std::lock_guard lock(mutex_);
  std::vector<StepRecord> out;
  for (std::uint64_t i = steps_ > kKeptRecords ? steps_ - kKeptRecords : 0; i < steps_; ++i)
    out.push_back(ring_[i % kKeptRecords]);
  return out;
}

std::uint64_t Records::steps() const {
  std::lock_guard lock(mutex_);
  return steps_;
}

}  // namespace vitrine
