// Engine: the only way to generate. Submit a request, read its stream.
//
// One thread runs steps; a step is a ragged batch over any number of sequences, some of which
// prefill a chunk of their prompt while others decode one token. submit() and stream calls are
// thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/memory_plan.h"
#include "engine/request.h"
#include "engine/runner.h"
#include "engine/scheduler.h"
#include "engine/stats.h"
#include "engine/step_record.h"

namespace vitrine {

class Engine {
 public:
  // Loads the model and allocates everything. `file` is kept open for the engine's life.
  static Result<std::unique_ptr<Engine>> create(std::shared_ptr<const ModelFile> file,
                                                EngineOptions options);
  ~Engine();

  // Starts the engine thread. Without it, the owner calls step() itself (tests do).
  void start();
  // One step. False when there was nothing to do. Not while the thread runs.
  bool step();

  // Checks the request and queues it. kBusy when the queue is full: see retry_after_seconds().
  Result<std::shared_ptr<TokenStream>> submit(Request request);
  // The same for Request::choices answers: a stream each.
  Result<std::vector<std::shared_ptr<TokenStream>>> submit_choices(Request request);
  // How long the queue will take to have room again, by the measured rate; at least 1.
  int retry_after_seconds() const;

  const ModelInfo& model() const { return model_->info(); }
  const MemoryPlan& memory() const { return plan_; }
  const EngineOptions& options() const { return options_; }
  const Backend& backend() const { return *backend_; }
  // Only while nothing runs.
  Peak measure_peak() { return backend_->measure_peak(weights().matmul_type); }
  void time_ops(bool on) { backend_->time_ops(on); }
  const WeightLoader::Totals& weights() const { return model_->totals(); }
  const ModelFile& file() const { return *file_; }
  // The last steps, oldest first (at most kKeptRecords).
  std::vector<StepRecord> records() const;
  // Thread-safe copies of what is going on.
  Snapshot snapshot() const;
  Metrics metrics() const;
  // The last requests that ended, oldest first (at most kKeptAccounts).
  std::vector<Account> accounts() const;
  // Pages in use, by cache group; zero everywhere when idle.
  std::vector<int> pages_used() const;
  void check_integrity() const;

  static constexpr int kKeptRecords = 1024;
  static constexpr int kKeptAccounts = Scheduler::kKeptAccounts;

 private:
  Engine() = default;
  static Result<std::unique_ptr<Engine>> load(std::shared_ptr<const ModelFile> file,
                                              EngineOptions options);
  Status check(const Request& request) const;
  std::unique_ptr<Sequence> make_sequence(const Request& request, int choice,
                                          std::uint64_t seed) const;
  void loop();
  void accept();
  // A step on its way.
  struct Flight {
    Batch batch;
    StepRecord record;
    bool collected = false;
  };
  void launch(Flight& flight, bool& settle);
  void collect(Flight& flight);
  void finish(int keep);
  void sample_row(Batch& batch, int entry, int position, std::span<const float> logits);
  void draw_token(BatchEntry& entry, int position, std::span<const float> logits);
  void pool_row(BatchEntry& entry, int position, std::span<const float> hidden);
  void record(const Batch& batch, StepRecord& r) const;

  // Constant after create().
  std::shared_ptr<const ModelFile> file_;
  EngineOptions options_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  MemoryPlan plan_;

  // The engine thread changes the scheduler and its sequences under this lock, and holds it while
  // it plans and commits, not while it computes; others may look under it.
  mutable std::mutex books_;
  std::unique_ptr<Scheduler> scheduler_;

  // Engine thread only.
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<Scratch> scratch_;
  std::vector<Flight> in_flight_;  // planned and run, not committed; oldest first
  std::vector<Flight> spare_;      // emptied, for their memory
  std::uint64_t step_ = 0;         // steps launched
  bool follows_ = false;           // nobody had to wait for work since the last

  std::atomic<int> waiting_{0};  // sequences in the scheduler's queue
  Clock::time_point started_ = Clock::now();
  std::thread thread_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  // Guarded by mutex_.
  std::vector<std::unique_ptr<Sequence>> incoming_;
  std::vector<StepRecord> records_;  // a ring
  std::uint64_t step_done_ = 0;      // steps with a record
  std::uint64_t next_id_ = 1, rejected_ = 0;
  bool stop_ = false;
};

}  // namespace vitrine
