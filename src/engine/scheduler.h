// Which tokens of which sequences run in a step, on which pages. Engine thread only.
//
// plan(): decoding sequences first, then prefill chunks, under the step's budget of tokens. A
// waiting sequence is admitted when every cache group can hold it to its last token, so nothing
// that runs can ever be short of a page. commit(): appends, ends, frees.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "engine/memory_plan.h"
#include "engine/sequence.h"

namespace vitrine {

class Scheduler {
 public:
  Scheduler(const MemoryPlan& plan, int step_tokens, std::vector<std::int32_t> eos_ids);

  void add(std::unique_ptr<Sequence> sequence);
  // Fills `batch` with the next step; empty when nothing can run.
  void plan(Batch& batch);
  // A batch's results are in; batches come in the order they were planned.
  void commit(const Batch& batch);
  // Adds a step's time to the sequences that were in it.
  void account(const Batch& batch, std::int64_t step_ns);

  bool idle() const { return waiting_.empty() && running_.empty(); }
  int running() const { return static_cast<int>(running_.size()); }
  int waiting() const { return static_cast<int>(waiting_.size()); }
  const PagePool& pool(int group) const { return pools_[group]; }
  int groups() const { return static_cast<int>(pools_.size()); }
  // Ends everything that is left, with `reason`.
  void abort_all(FinishReason reason, const std::string& error);
  // Broken accounting aborts the process: pages of the pools and of the tables must agree.
  void check_integrity() const;

 private:
  void admit();
  void drop_cancelled();
  bool schedule(Batch& batch, Sequence& s, int budget);
  void append(Sequence& s, const BatchEntry& entry);
  void finish(Sequence& s, FinishReason reason, const std::string& error = {});
  void reap();

  const MemoryPlan& plan_;
  int step_tokens_;
  std::vector<std::int32_t> eos_ids_;
  std::vector<PagePool> pools_;  // by group
  std::vector<int> unreserved_;  // pages nobody has set aside, by group
  std::vector<int> free_slots_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<std::unique_ptr<Sequence>> running_;  // in order of admission
};

}  // namespace vitrine
