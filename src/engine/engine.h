// Engine: the only way to generate. Submit a request, read its stream.
//
// One thread runs steps; a step is a ragged batch over any number of sequences, some of which
// prefill a chunk of their prompt while others decode.
//
// Threads: every function may be called from any thread, at any time, unless it says otherwise.
// None but measure_peak() waits for a step to end; the longest wait is for the scheduler to plan or commit one.
//
// Ownership: the engine owns the model, its memory and the sequences. A stream is shared by the
// engine and its reader and outlives both. Closing the engine (the destructor) ends every request
// that is left with FinishReason::kCancelled, after the step at work.
//
// Errors: create() and submit() refuse what cannot be done, with an error that names the thing,
// what was found and what is allowed. After that a request fails alone (FinishReason::kError),
// never the engine. submit() may throw std::bad_alloc, with nothing changed. A sequence that finds no
// memory while it runs ends with kOutOfMemory; a step that fails as a whole ends all that run.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/info.h"
#include "engine/memory_plan.h"
#include "engine/options.h"
#include "engine/request.h"
#include "engine/stats.h"
#include "engine/step_record.h"
#include "kv/page_pool.h"
#include "trace/step_log.h"

namespace vitrine {

class ModelFile;

class Engine {
 public:
  // Loads the model and allocates everything that steps need. `file` is kept open for the engine's
  // life. kTooLarge when the plan does not fit the memory that is free.
  static Result<std::unique_ptr<Engine>> create(std::shared_ptr<const ModelFile> file,
                                                EngineOptions options);
  ~Engine();

  // Starts the engine's thread; once. Without it, the owner calls step() (tests do).
  Status start();
  // One step. False when there was nothing to do. From one thread, and not after start().
  bool step();

  // Checks the request and queues it. kInvalid or kTooLarge name what is wrong with it; kBusy when
  // the queue is full: see retry_after_seconds().
  Result<std::shared_ptr<TokenStream>> submit(Request request);
  // The same for Request::choices answers: a stream each, in the order of the choices.
  Result<std::vector<std::shared_ptr<TokenStream>>> submit_choices(Request request);
  // How long the queue will take to have room again, by the measured rate: 1 to 600.
  int retry_after_seconds() const;

  // Constant after create().
  const EngineInfo& info() const;
  const MemoryPlan& memory() const;
  const EngineOptions& options() const;  // with what was left to the machine filled in
  const ModelFile& file() const;

  // Nothing runs, waits or has just been submitted.
  bool idle() const;

  // What the machine can do at most, measured; takes about a second and up to 512 MiB, on a GPU up to 4 GiB of its
  // memory where it has them. No step begins meanwhile. kBusy while something runs or waits, kUnavailable where there
  // is no memory for it.
  Result<Peak> measure_peak();
  // The highest that was measured so far.
  std::optional<Peak> peak() const;
  // Times every op from now on, into StepRecord::ops. Only while nothing runs.
  void time_ops(bool on);

  // Copies of what is going on and of what was.
  Snapshot snapshot() const;
  Metrics metrics() const;
  PageMap page_map() const;
  // What one page of a cache group holds now; none where there is no such page.
  std::optional<PageContent> page(int group, int page) const;
  // What the prefix cache can find: prefix_tree() makes a tree of it.
  NamedPages named_pages() const;
  // All of it at one moment: after event `seq` of the log.
  struct Moment {
    Snapshot snapshot;  // with the choices that wait for their prompt
    PageMap pages;
    std::uint64_t seq = 0;
    StepLog::Place place;  // of the events that follow
    std::int64_t now_ns = 0;
  };
  Moment moment() const;
  // The events of the last steps, to be read as they come. While somebody watches, changes of pages are among
  // them.
  const StepLog& log() const;
  const std::string& epoch() const;  // of the log: random, another one for every engine
  void watch();
  void unwatch();
  // Tells the log that the answer to a request is out, or that no more of it will go out.
  void written(std::uint64_t sequence, const Written& answer);
  // Of the last steps that the log has, kKeptRecords at most, those from number `from` on, at most `most`, oldest first.
  std::vector<StepRecord> steps_since(std::uint64_t from, std::size_t most = kKeptRecords) const;
  // Of these, those in which one of `sequences` (ascending) had rows.
  std::vector<OwnStep> steps_of(std::span<const std::uint64_t> sequences) const;
  // The last kKeptAccounts requests that ended, oldest first.
  std::vector<Account> accounts() const;
  std::vector<int> pages_used() const;  // by cache group; 0 everywhere when idle
  // Aborts the process when pages of the pools and of the sequences do not agree.
  void check_integrity() const;

 private:
  struct Parts;
  explicit Engine(std::unique_ptr<Parts> parts);
  Snapshot empty_snapshot() const;
  void loop();
  void accept();
  void give_up(std::string_view why) noexcept;

  std::unique_ptr<Parts> p_;
};

}  // namespace vitrine
