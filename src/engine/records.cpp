#include "engine/records.h"

#include <utility>

namespace vitrine {
namespace {

constexpr std::uint64_t kNoStep = UINT64_MAX;

}  // namespace

Records::Records(int sequences) : ring_(kKeptRecords) {
  for (StepRecord& r : ring_) r.entries.reserve(sequences);
}

void Records::add(StepRecord& record) {
  std::lock_guard lock(mutex_);
  // A step that failed has no record; its place keeps none of an older one.
  for (; steps_ < record.step; ++steps_) {
    StepRecord& missing = ring_[steps_ % kKeptRecords];
    missing.entries.clear();
    missing.step = kNoStep;
  }
  steps_ = record.step + 1;
  std::swap(ring_[record.step % kKeptRecords], record);
}

std::vector<StepRecord> Records::list() const {
  std::lock_guard lock(mutex_);
  std::vector<StepRecord> out;
  for (std::uint64_t i = steps_ > kKeptRecords ? steps_ - kKeptRecords : 0; i < steps_; ++i)
    if (ring_[i % kKeptRecords].step == i) out.push_back(ring_[i % kKeptRecords]);
  return out;
}

std::uint64_t Records::steps() const {
  std::lock_guard lock(mutex_);
  return steps_;
}

}  // namespace vitrine
