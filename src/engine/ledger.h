// The accounts of requests and the metrics of the engine: both are sums over the same records.
// Engine thread only, under the engine's books lock.
#pragma once

#include <utility>
#include <vector>

#include "engine/batch.h"
#include "engine/stats.h"
#include "engine/step_record.h"

namespace vitrine {

class Ledger {
 public:
  Ledger();

  // The sequence was admitted: its time in the queue ends, unless it ran before.
  void admitted(Sequence& s, Clock::time_point now);
  // The prefix cache was asked for the tokens to compute and had `found` of them.
  void looked_up(const Sequence& s, int found);
  void recomputes(Sequence& s, int tokens);  // after a preemption
  void preempted(Sequence& s);
  // Where the time of the oldest step that is not committed begins.
  void wall_from(std::int64_t ns) { wall_from_ = ns; }
  // A batch has run; its record is complete but for the time of committing.
  void ran(const Batch& batch, const StepRecord& record);
  // What came of the guesses of a step, by source.
  void guessed(const StepRecord& record);
  // Its share of the step that was committed last. `s` is null when it has ended in that step.
  void charge(Sequence* s, const StepEntry& entry);
  void settled();  // all of them are charged
  // A token was drawn for it at `now`, an end token too; appended(): it is part of the output. `guess`: the place
  // in its draft of the guess that it is; -1: it was not guessed.
  void drew(Sequence& s, Clock::time_point now);
  void appended(Sequence& s, int guess = -1);
  // Closes the account, which is kept among the last ones if there is memory for it, and returns it.
  Account ended(Sequence& s, FinishReason reason, const std::string& error) noexcept;

  // Adds to the time spent on prefixes; take_prefix_ns(): since the last call.
  std::int64_t& prefix_ns() { return prefix_ns_; }
  std::int64_t take_prefix_ns();
  int take_preempted() { return std::exchange(preempted_, 0); }  // since the last call

  const Metrics& metrics() const { return metrics_; }
  const std::vector<Account>& accounts() const { return accounts_; }  // a ring
  // Requests that ended per second, lately; 0 when unknown.
  double finish_rate(Clock::time_point now) const;
  // Of the steps that prefilled, averaged; 0 when unknown.
  double prefill_ns_per_token() const { return prefill_ns_per_token_; }

 private:
  void speculated(Account& account, const BatchEntry& entry);
  void measure(const Sequence& s);
  void keep(const Account& account);

  Metrics metrics_;
  std::vector<Account> accounts_;
  std::uint64_t ended_ = 0;
  std::vector<Clock::time_point> ends_;  // a ring of the last ends
  std::vector<std::size_t> just_ended_;  // in accounts_, since settled()
  int preempted_ = 0;
  std::int64_t wall_from_ = 0;
  std::int64_t prefix_ns_ = 0;
  double prefill_ns_per_token_ = 0;
};

// Adds the time until its end to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(std::int64_t& sum) : sum_(sum), start_(Clock::now()) {}
  ~Stopwatch() { sum_ += std::chrono::nanoseconds(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  std::int64_t& sum_;
  Clock::time_point start_;
};

}  // namespace vitrine
