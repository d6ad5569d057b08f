#include "engine/records.h"

#include <algorithm>
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

std::vector<StepRecord> Records::since(std::uint64_t from, std::size_t most) const {
  std::lock_guard lock(mutex_);
  std::vector<StepRecord> out;
  for (std::uint64_t i = std::max(from, oldest()); i < steps_ && out.size() < most; ++i)
    if (ring_[i % kKeptRecords].step == i) out.push_back(ring_[i % kKeptRecords]);
  return out;
}

std::vector<StepRecord> Records::of(std::uint64_t sequence) const {
  std::lock_guard lock(mutex_);
  std::vector<StepRecord> out;
  for (std::uint64_t i = oldest(); i < steps_; ++i) {
    const StepRecord& r = ring_[i % kKeptRecords];
    auto has = [&](const StepEntry& e) { return e.sequence == sequence; };
    if (r.step == i && std::any_of(r.entries.begin(), r.entries.end(), has)) out.push_back(r);
  }
  return out;
}

std::uint64_t Records::steps() const {
  std::lock_guard lock(mutex_);
  return steps_;
}

}  // namespace vitrine
