// Which tokens of which sequences run in a step, on which pages. Engine thread only, under the
// engine's books lock.
//
// plan(): decoding sequences first, then prefill chunks of several sequences side by side, under
// the step's budget of tokens; the tenant that has had the fewest tokens prefills first. With
// several tenants no step takes much longer than mixed_step_ms, and prefill gets half of it, so
// that nobody's first token waits for what others do. commit(): appends, ends, frees.
//
// Pages. Sequences take pages as they grow. When none is left, cached pages are evicted; then
// running sequences are preempted: those whose readers have stalled, then the last by rank. Rank is
// the time of submission, moved by FairQueue::kAgeing per level of priority, and never changes; a
// sequence preempts only those ranked after it, so the first always gets on and no request fails.
// Beside that, a tenant takes seats and pages from one that has more seats for its weight
// (FairQueue::may_take), but never from the first by rank. One that waits takes the place of its
// own tenant's only, where these have a lower priority: for seats nobody preempts others by priority.
// A preempted sequence keeps its tokens and waits; it is computed again, as far as its pages are no
// longer in the cache. Its results are the same: rows do not depend on how they were scheduled.
//
// A sequence that is in a planned but uncommitted step cannot be preempted. Where that is needed,
// settle() asks the engine to commit everything before it plans again.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/batch.h"
#include "engine/changes.h"
#include "engine/fair_queue.h"
#include "engine/ledger.h"
#include "engine/memory_plan.h"
#include "engine/options.h"
#include "engine/speculator.h"
#include "engine/stats.h"
#include "engine/step_record.h"
#include "kv/prefix_cache.h"

namespace vitrine {

class Scheduler {
 public:
  // `guesses`: a model that guesses next tokens; null: none.
  Scheduler(const MemoryPlan& plan, const EngineOptions& options, ModelSource* guesses = nullptr);

  // Guesses for the step that is planned next. Without the books lock, since models may run for them; it changes
  // nothing that others look at.
  void draft();
  // A sequence for which there is no memory ends at once (kOutOfMemory).
  void add(std::unique_ptr<Sequence> sequence) noexcept;
  // Fills `batch` with the next step; empty when nothing can run now.
  void plan(Batch& batch, Clock::time_point now);
  bool settle() const { return settle_; }
  // Why plan() left the first of the queue there.
  const Blocked& blocked() const { return blocked_; }
  // A batch has run and its results are in: zero or more tokens per entry. Batches come in the
  // order they were planned. The record is complete but for the time of committing; what came of its
  // entries is filled in.
  void commit(const Batch& batch, StepRecord& record);
  // Adds the shares of the step that was committed last to the accounts.
  void settle(const StepRecord& record);

  bool idle() const { return queue_.empty() && running_.empty() && orphans_.empty(); }
  int running() const { return static_cast<int>(running_.size()); }
  int waiting() const { return queue_.size(); }
  bool has_room(const FairQueue::Arrival& arrival) const {
    return queue_.has_room(arrival, options_.max_queue);
  }
  const PrefixCache& cache() const { return cache_; }
  const PrefixHasher& hasher() const { return hasher_; }
  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }
  Changes& changes() { return changes_; }
  Speculator& speculator() { return speculator_; }

  // Ends everything that is left, with `reason`.
  void abort_all(FinishReason reason, std::string_view error) noexcept;
  // `forks`: choices that wait for their prompt to be computed are listed too.
  void fill(Snapshot& snapshot, Clock::time_point now, bool forks = false) const;
  PageMap page_map() const;
  std::optional<PageContent> page(int group, int page) const;
  void list_named(NamedPages& out) const;
  Metrics metrics() const;
  // Broken accounting aborts the process: pages of the pools and of the tables must agree.
  void check_integrity() const;

  static constexpr int kPartialPrefills = 4;  // prompts that share a step

 private:
  void end_overdue(Clock::time_point now);
  bool overdue(Sequence& s, Clock::time_point now);
  bool held_too_long(Sequence& s, Clock::time_point now);
  // Admission.
  void admit(Clock::time_point now);
  bool batch_is_full(Clock::time_point now) const;
  bool batch_runs() const;
  bool place(Sequence& s);
  bool fits(const Sequence& s);
  void block(Sequence& s, Wait reason, Clock::time_point now);
  void start(std::unique_ptr<Sequence> s, Clock::time_point now);
  void sit_down(std::unique_ptr<Sequence> s, Clock::time_point now, int cached);
  void seat(Sequence& s);
  // Planning.
  int mixed_rows() const;
  int most_decoding(bool prefills) const;
  StepShape next_shape() const;
  void plan_decode(Batch& batch, int most);
  int guesses_with_room(const Sequence& s) const;
  void plan_prefill(Batch& batch, int budget);
  bool schedule(Batch& batch, Sequence& s, int count);
  void score_rows(Batch& batch, const Sequence& s) const;
  void fork(Batch& batch, Sequence& s);
  bool take_pages(Batch& batch, Sequence& s, int end);
  // Preemption.
  Sequence* victim(const Sequence& wants, bool waits) const;
  bool preempt_for(const Sequence& wants, bool waits);
  void preempt(Sequence& s, const Sequence& by);
  void preempt_one(Sequence& s, const Sequence& by, int prefill_end);
  void requeue_preempted();
  // Beams (scheduler_beams.cpp).
  void seat_others(Sequence& first, Clock::time_point now);
  int pages_of_others(const Sequence& s) const;
  bool beams_overdue(Sequence& s, Clock::time_point now);
  void advance(Beams& b, StepRecord& record, Clock::time_point now);
  bool move_texts(Beams& b, StepRecord& record, Clock::time_point now);
  void copy_text(Sequence& to, const Sequence& from);
  void retire(Sequence& s);
  void meet(Beams& b, StepRecord& record);
  static void part(Beams& b);
  void tell_tokens(Sequence& s, std::span<const std::int32_t> output, Clock::time_point now,
                   bool all);
  void answer(Beams& b, Clock::time_point now, std::optional<FinishReason> reason = {});
  void end_beams(Beams& b, FinishReason reason, std::string_view error = {}) noexcept;
  // Of a beam: its whole request.
  void end(Sequence& s, FinishReason reason, std::string_view error = {}) noexcept;
  // Lives (scheduler_life.cpp).
  void wait_behind(const Sequence& first, Clock::time_point now);
  void list_absent(Batch& batch, Clock::time_point now);
  // Results (scheduler_commit.cpp).
  void take_back(Sequence& s, const BatchEntry& entry);
  void take_results(Sequence& s, const Batch& batch, const BatchEntry& entry,
                    Clock::time_point now);
  // `guess`: the place in its draft of the guess that it is; -1: it was not guessed.
  void append(Sequence& s, const Batch& batch, const DrawnToken& token, Clock::time_point now,
              int guess);
  void name_pages(Sequence& s);
  // Never fails: an end is told even when there is no memory for its words.
  void finish(Sequence& s, FinishReason reason, std::string_view error = {},
              std::int32_t stop_token = -1) noexcept;
  void abort(Sequence& s, FinishReason reason, std::string_view error) noexcept;
  void release(Sequence& s);
  void reap();
  // What becomes of pages, for those who watch (scheduler_pages.cpp): before they are released, after all else.
  void tell(PageOp op, const Sequence& s, int group, int index, PageId page, int holders);
  void tell_held(PageOp op, const Sequence& s);
  void tell_grown(const Sequence& s, int group, std::size_t from, PageCopy copy, int free);
  void tell_released(const Sequence& s, int group, int begin, int end);
  void release_pages(Sequence& s);
  void set_time(Clock::time_point now);
  SequenceStats stats_of(const Sequence& s, Clock::time_point now) const;

  const MemoryPlan& plan_;
  const EngineOptions& options_;
  PrefixHasher hasher_;
  PrefixCache cache_;
  FairQueue queue_;
  std::vector<int> free_slots_;
  std::vector<Sequence*> by_slot_;                  // null: free
  std::vector<std::unique_ptr<Sequence>> running_;  // by rank
  std::vector<std::unique_ptr<Sequence>> orphans_;  // forks whose first choice has gone
  // Added and not finished. The queue and the orphans have room for that many, so that moving a
  // sequence from one list to another never allocates.
  std::size_t inside_ = 0;
  std::size_t turn_ = 0;  // which decodes first when not all can
  std::uint64_t plans_ = 0;
  bool settle_ = false;
  Blocked blocked_;
  std::vector<Sequence*> committed_;  // of the batch that is committed
  std::vector<Sequence*> prefills_;   // of the step that is planned
  Ledger ledger_;
  Changes changes_;
  Speculator speculator_;
};

}  // namespace vitrine
