// The engine's log of events (trace/step_log.h): what is written into it, and what is read from it as records
// of steps.
//
// Written under the engine's books lock, which is all that keeps two from writing at once. Read by any thread
// without it.
#pragma once

#include <array>
#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "engine/changes.h"
#include "engine/step_record.h"
#include "trace/step_log.h"

namespace vitrine {

struct Sequence;

class Records {
 public:
  // Whether a step of `sequences` fits into a log of `bytes`.
  static bool fits(int sequences, std::int64_t bytes);
  // A log of `bytes` for steps of up to `sequences`, which fit. 0: nothing is kept.
  Records(int sequences, std::int64_t bytes);
  // Changes of pages that can be told at once.
  std::size_t most_pages() const { return most_pages_; }
  const StepLog& log() const { return log_; }
  const std::string& epoch() const { return epoch_; }  // of this log; random

  // ---- Under the books lock.

  void arrived(const Sequence& s);
  // What planning step number `step` has changed, or something else outside of a commit.
  void planned(Changes& changes, const Blocked& blocked, std::uint64_t step);
  // Steps come in order, from 0 on. Beside the record, what committing it has changed.
  void committed(StepRecord& record, Changes& changes);
  void written(const WrittenEvent& event);
  // Somebody watches from now on, and the changes of pages are told; until all have gone, and for
  // kWatchedAfter more, so that who comes back at once has missed nothing.
  void watch(Changes& changes);
  void unwatch();  // any thread
  // To be asked now and then whether that is over.
  void look(Changes& changes, std::int64_t now);
  static constexpr std::int64_t kWatchedAfter = 10'000'000'000;

  // ---- Any thread.

  // Copies of those from step `from` on that are kept, at most `most`, oldest first.
  std::vector<StepRecord> since(std::uint64_t from, std::size_t most) const;
  // Those in which one of `sequences` (ascending) had an entry, oldest first. The log is read once for all of them.
  std::vector<OwnStep> of(std::span<const std::uint64_t> sequences) const;
  std::uint64_t steps() const { return steps_.load(std::memory_order_acquire); }  // ever

 private:
  template <typename Fields, typename Event>
  std::uint64_t append(Event& event);
  void append_ends(Changes& changes);
  bool read(std::uint64_t step, std::vector<std::uint64_t>& words, StepEvent& event) const;
  std::uint64_t oldest() const;

  StepLog log_;
  std::size_t most_pages_ = 0;
  std::string epoch_;
  std::atomic<int> watchers_{0};
  std::atomic<std::int64_t> watched_until_{0};  // where there are none
  PlanEvent part_;                              // what was told last; keeps its memory
  // Where the log has a step, by its number; steps that failed have none.
  std::array<std::atomic<std::uint64_t>, kKeptRecords> places_{};
  std::atomic<std::uint64_t> steps_{0};
};

}  // namespace vitrine
