#include "engine/engine.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "base/log.h"
#include "base/process_clock.h"
#include "engine/admission.h"
#include "engine/loading.h"
#include "engine/records.h"
#include "engine/scheduler.h"
#include "engine/stepper.h"
#include "trace/flight_recorder.h"

namespace vitrine {

struct Engine::Parts {
  explicit Parts(std::unique_ptr<LoadedModel> model)
      : loaded(std::move(model)),
        records(loaded->plan.sequences, loaded->plan.trace_bytes),
        recorder(records.log(), records.epoch()),
        scheduler(loaded->plan, loaded->options, loaded->draft.get()),
        admission(loaded->plan, loaded->info, scheduler.hasher(),
                  loaded->file->generation().eos_ids),
        stepper(*loaded, scheduler, books, records) {
    if (!records.log().on()) return;
    scheduler.changes().turn_on(loaded->plan.sequences, records.most_pages());
    if (loaded->options.trace_pages) records.watch(scheduler.changes());
  }

  std::unique_ptr<LoadedModel> loaded;
  Records records;
  FlightRecorder recorder;

  // The engine thread changes the scheduler and its sequences under this lock, and holds it while
  // it plans and commits, not while it computes; others may look under it.
  mutable std::mutex books;
  Scheduler scheduler;
  Admission admission;
  Stepper stepper;  // engine thread only

  // Held for a step, and while peaks are measured. Taken before the others.
  std::mutex device;

  std::thread thread;
  Clock::time_point started = Clock::now();

  mutable std::mutex mutex;
  std::condition_variable work;
  // Guarded by mutex.
  std::vector<std::unique_ptr<Sequence>> incoming;
  std::uint64_t next_id = 1, rejected = 0;
  std::optional<Peak> peak;
  bool stop = false;
};

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<const ModelFile> file,
                                               EngineOptions options) {
  try {
    VT_TRY(auto loaded, load_for_serving(std::move(file), std::move(options)));
    return std::unique_ptr<Engine>(new Engine(std::make_unique<Parts>(std::move(loaded))));
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kUnavailable, "out of memory while loading the model");
  } catch (const std::system_error& error) {
    return make_error(ErrorCode::kUnavailable, "cannot start the threads that compute: {}",
                      error.code().message());
  }
}

Engine::Engine(std::unique_ptr<Parts> parts) : p_(std::move(parts)) {}

Engine::~Engine() {
  {
    std::lock_guard lock(p_->mutex);
    p_->stop = true;
  }
  p_->work.notify_all();
  if (p_->thread.joinable()) p_->thread.join();
  accept();
  p_->scheduler.abort_all(FinishReason::kCancelled, "the engine was closed");
}

// ---- the engine's thread

Status Engine::start() {
  try {
    p_->thread = std::thread([this] { loop(); });
  } catch (const std::system_error& error) {
    return make_error(ErrorCode::kUnavailable, "cannot start the engine's thread: {}",
                      error.code().message());
  }
  return Ok{};
}

void Engine::loop() {
  // There may be sequences none of which can run: readers that are behind, a batch that is not
  // full.
  constexpr std::chrono::milliseconds kLookAgain{1};
  bool blocked = false;
  while (true) {
    {
      std::unique_lock lock(p_->mutex);
      auto woken = [&] { return p_->stop || !p_->incoming.empty(); };
      if (p_->scheduler.idle() && p_->stepper.settled())
        p_->work.wait(lock, woken), p_->stepper.paused();
      else if (blocked)
        p_->work.wait_for(lock, kLookAgain, woken), p_->stepper.paused();
      if (p_->stop) return;
    }
    blocked = !step();
  }
}

bool Engine::step() {
  std::lock_guard device(p_->device);
  accept();
  try {
    return p_->stepper.step();
  } catch (const std::bad_alloc&) {
    give_up(kOutOfMemory);
  } catch (const std::exception& error) {
    give_up(error.what());
  }
  return true;
}

// A step threw where no single sequence is to blame. Pages and tables are whole, since nothing that
// changes them allocates; what runs is not.
void Engine::give_up(std::string_view why) noexcept {
  LogLine(LogLevel::kError, "a step failed; all requests are ended").field("what", why);
  std::lock_guard books(p_->books);
  p_->stepper.abandon();
  p_->scheduler.abort_all(FinishReason::kError, why);
  p_->records.planned(p_->scheduler.changes(), p_->scheduler.blocked(), p_->stepper.next_step());
}

void Engine::accept() {
  std::lock_guard books(p_->books);
  std::lock_guard lock(p_->mutex);
  for (auto& sequence : p_->incoming) {
    p_->records.arrived(*sequence);
    p_->scheduler.add(std::move(sequence));
  }
  p_->incoming.clear();
}

// ---- requests

Result<std::shared_ptr<TokenStream>> Engine::submit(Request request) {
  request.choices = 1;
  if (request.beams) request.beams->returned = 1;
  VT_TRY(auto streams, submit_choices(std::move(request)));
  return streams[0];
}

Result<std::vector<std::shared_ptr<TokenStream>>> Engine::submit_choices(Request request) {
  VT_RETURN_IF_ERROR(p_->admission.check(request));
  const std::string tenant = request.tenant;
  auto full = [&, weight = request.weight,
               choices = request.beams ? request.beams->beams : request.choices] {
    FairQueue::Arrival arrival{.tenant = tenant, .weight = weight, .sequences = choices};
    for (const auto& s : p_->incoming) {
      const int waits = 1 + static_cast<int>(s->forks.size());
      arrival.all += waits;
      if (s->request.tenant == tenant) arrival.mine += waits;
    }
    return !p_->scheduler.has_room(arrival);
  };
  auto busy = [&] {
    ++p_->rejected;
    return make_error(ErrorCode::kBusy, "the queue is full: it holds {} sequences{}",
                      p_->loaded->options.max_queue,
                      tenant.empty() ? "" : " and all of this key's share");
  };
  {
    // Asked before the work of making sequences, which a flood should not cost.
    std::scoped_lock lock(p_->books, p_->mutex);
    if (full()) return busy();
  }
  const auto wanted = static_cast<std::size_t>(request.choices);
  std::unique_ptr<Sequence> first = p_->admission.make(std::move(request));
  std::vector<std::shared_ptr<TokenStream>> streams{first->stream};
  for (auto& f : first->forks)
    if (streams.size() < wanted) streams.push_back(f->stream);
  {
    std::scoped_lock lock(p_->books, p_->mutex);
    if (full()) return busy();
    auto name = [&](Sequence& s) {
      s.id = s.account.id = s.stream->id_ = p_->next_id++;
      if (s.beams) s.account.beam_of = first->id;
    };
    name(*first);
    for (auto& f : first->forks) name(*f);
    p_->incoming.push_back(std::move(first));
  }
  p_->work.notify_one();
  return streams;
}

int Engine::retry_after_seconds() const {
  std::lock_guard lock(p_->books);
  const double rate = p_->scheduler.ledger().finish_rate(Clock::now());
  const double seconds = rate > 0 ? p_->scheduler.waiting() / rate : 1;
  return static_cast<int>(std::clamp(std::ceil(seconds), 1.0, 600.0));
}

// ---- what it is and does

const EngineInfo& Engine::info() const { return p_->loaded->info; }
const MemoryPlan& Engine::memory() const { return p_->loaded->plan; }
const EngineOptions& Engine::options() const { return p_->loaded->options; }
const ModelFile& Engine::file() const { return *p_->loaded->file; }

Result<Peak> Engine::measure_peak() {
  constexpr std::int64_t kNeeded = std::int64_t{1} << 30;  // twice what a backend takes at least
  const auto busy = [] {
    return make_error(ErrorCode::kBusy,
                      "peaks are measured while nothing runs: found requests that run or wait");
  };
  if (!idle()) return busy();
  // After the step that has just ended, and before the next: whoever submits now waits for it.
  std::lock_guard device(p_->device);
  if (!idle() || !p_->stepper.settled()) return busy();
  const Device& backend = *p_->loaded->backend;
  if (const auto free = backend.free_memory(); free && *free < kNeeded)
    return make_error(ErrorCode::kUnavailable,
                      "measuring peaks needs {} MiB of free memory: found {} MiB", kNeeded >> 20,
                      *free >> 20);
  const Peak found = p_->loaded->backend->measure_peak(p_->loaded->matmul_type);
  if (found.gflop_s <= 0 || found.read_gb_s <= 0)
    return make_error(ErrorCode::kUnavailable, "the peaks of this machine cannot be measured now");
  std::lock_guard lock(p_->mutex);
  if (!p_->peak) p_->peak.emplace();
  p_->peak->gflop_s = std::max(p_->peak->gflop_s, found.gflop_s);
  p_->peak->read_gb_s = std::max(p_->peak->read_gb_s, found.read_gb_s);
  return found;
}

std::optional<Peak> Engine::peak() const {
  std::lock_guard lock(p_->mutex);
  return p_->peak;
}

void Engine::time_ops(bool on) { p_->loaded->backend->time_ops(on); }

bool Engine::idle() const {
  std::scoped_lock lock(p_->books, p_->mutex);
  return p_->scheduler.idle() && p_->incoming.empty();
}

Snapshot Engine::empty_snapshot() const {
  const MemoryPlan& plan = memory();
  Snapshot out{.max_sequences = plan.sequences,
               .step_tokens = options().step_tokens,
               .max_queue = options().max_queue,
               .context = plan.context,
               .policy = policy_name(options().policy),
               .pools = {},
               .running = {},
               .waiting = {},
               .blocked = {}};
  out.uptime_s = std::chrono::duration<double>(Clock::now() - p_->started).count();
  return out;
}

Snapshot Engine::snapshot() const {
  Snapshot out = empty_snapshot();
  std::lock_guard lock(p_->books);
  out.step = p_->records.steps();
  p_->scheduler.fill(out, Clock::now());
  return out;
}

Engine::Moment Engine::moment() const {
  Moment out;
  out.snapshot = empty_snapshot();
  std::lock_guard lock(p_->books);
  const Clock::time_point now = Clock::now();
  out.snapshot.step = p_->records.steps();
  p_->scheduler.fill(out.snapshot, now, true);
  out.pages = p_->scheduler.page_map();
  out.seq = p_->records.log().last_seq();
  out.place = p_->records.log().end();
  out.now_ns = process_ns(now);
  return out;
}

const StepLog& Engine::log() const { return p_->records.log(); }
const std::string& Engine::epoch() const { return p_->records.epoch(); }

void Engine::watch() {
  std::lock_guard lock(p_->books);
  p_->records.watch(p_->scheduler.changes());
}

void Engine::unwatch() { p_->records.unwatch(); }

void Engine::written(std::uint64_t sequence, const Written& answer) {
  const WrittenEvent event{.at_ns = process_ns(),
                           .sequence = sequence,
                           .first_write_ns = answer.first_ns,
                           .last_write_ns = answer.last_ns,
                           .bytes_out = answer.bytes};
  std::lock_guard lock(p_->books);
  p_->records.written(event);
}

PageMap Engine::page_map() const {
  std::lock_guard lock(p_->books);
  return p_->scheduler.page_map();
}

std::optional<PageContent> Engine::page(int group, int page) const {
  std::lock_guard lock(p_->books);
  return p_->scheduler.page(group, page);
}

NamedPages Engine::named_pages() const {
  NamedPages out;
  std::size_t most = 0;  // room is made before the lock is taken
  for (const CacheGroup& g : memory().groups)
    most = std::max(most, static_cast<std::size_t>(g.pages));
  out.pages.reserve(most);
  out.tokens.reserve(most * static_cast<std::size_t>(memory().page_size));
  std::lock_guard lock(p_->books);
  p_->scheduler.list_named(out);
  return out;
}

Metrics Engine::metrics() const {
  std::uint64_t rejected = 0;
  {
    std::lock_guard lock(p_->mutex);
    rejected = p_->rejected;
  }
  std::lock_guard lock(p_->books);
  Metrics out = p_->scheduler.metrics();
  out.rejected = rejected;
  return out;
}

std::vector<StepRecord> Engine::steps_since(std::uint64_t from, std::size_t most) const {
  return p_->records.since(from, most);
}

std::vector<OwnStep> Engine::steps_of(std::span<const std::uint64_t> sequences) const {
  return p_->records.of(sequences);
}

std::vector<Account> Engine::accounts() const {
  std::lock_guard lock(p_->books);
  std::vector<Account> out = p_->scheduler.ledger().accounts();
  std::sort(out.begin(), out.end(), [](const Account& a, const Account& b) { return a.id < b.id; });
  return out;
}

std::vector<int> Engine::pages_used() const {
  std::lock_guard lock(p_->books);
  std::vector<int> used;
  for (int g = 0; g < p_->scheduler.cache().groups(); ++g)
    used.push_back(p_->scheduler.cache().pool(g).used());
  return used;
}

void Engine::check_integrity() const {
  std::lock_guard device(p_->device);  // a draft model's pages change while a step is prepared
  std::lock_guard lock(p_->books);
  p_->scheduler.check_integrity();
}

}  // namespace vitrine
