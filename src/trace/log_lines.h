// The log as lines of a `.vtr` file.
#pragma once

#include <string>
#include <vector>

#include "trace/step_log.h"

namespace vitrine {

class LogLines {
 public:
  LogLines(const StepLog& log, StepLog::Place from)
      : log_(log), place_(from), told_(from.seq - 1) {}

  // Appends events up to number `last` until `out` has `most` bytes and a bit, or there are no more. Where some are
  // lost it stops before what follows, and returns how many.
  std::uint64_t more(std::string& out, std::uint64_t last, std::size_t most);
  // The newest event that was appended or lost.
  std::uint64_t told() const { return told_; }

 private:
  const StepLog& log_;
  StepLog::Place place_;
  std::uint64_t told_;
  std::vector<std::uint64_t> words_;  // read and not appended yet
};

// Before the oldest of the newest events that together have at most `bytes`.
StepLog::Place newest_events(const StepLog& log, std::size_t bytes);

// A line of it that is no event of the log.
void append_gap_line(std::string& out, std::uint64_t from, std::uint64_t to);

}  // namespace vitrine
