#include "engine/records.h"

#include <utility>

namespace vitrine {

Records::Records(int sequences) : ring_(kKept) {
  for (StepRecord& r : ring_) r.entries.reserve(sequences);
}

void Records::add(StepRecord& record) {
  std::lock_guard lock(mutex_);
  std::swap(ring_[record.step % kKept], record);
  ++steps_;
}

std::vector<StepRecord> Records::list() const {
  std::lock_guard lock(mutex_);
  std::vector<StepRecord> out;
  for (std::uint64_t i = steps_ > kKept ? steps_ - kKept : 0; i < steps_; ++i)
    out.push_back(ring_[i % kKept]);
  return out;
}

std::uint64_t Records::steps() const {
  std::lock_guard lock(mutex_);
  return steps_;
}

}  // namespace vitrine
