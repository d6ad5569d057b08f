// The engine keeps the records of its last steps.
#pragma once

#include "engine/account.h"
#include "trace/step_record.h"

namespace vitrine {

inline constexpr int kKeptRecords = 1024;  // at most: fewer where the log is too small for them

// What some sequences are told of a step that they were in. Its size goes by theirs, not by how many others
// there were.
struct OwnStep {
  static constexpr std::size_t kMostLargest = 17;  // 16 beside oneself

  StepRecord record;               // its entries are theirs only
  std::size_t sequences = 0;       // entries that it had
  std::vector<StepEntry> largest;  // of all of them, the most rows first
};

}  // namespace vitrine
