#include "engine/engine.h"

#include <algorithm>
#include <cmath>

#include "base/draw_weight.h"
#include "sampling/rng.h"

namespace vitrine {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<const ModelFile> file,
                                               EngineOptions options) {
  try {
    return load(std::move(file), std::move(options));
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kUnavailable, "out of memory while loading the model");
  }
}

Result<std::unique_ptr<Engine>> Engine::load(std::shared_ptr<const ModelFile> file,
                                             EngineOptions options) {
  auto engine = std::unique_ptr<Engine>(new Engine());
  VT_TRY(engine->backend_, create_backend(options.backend, backend_options(options)));
  // Counted first: a context or a size that cannot be is refused before anything is loaded.
  ModelInfo info;
  VT_TRY(engine->plan_, plan_memory(*file, *engine->backend_, options, &info));
  VT_RETURN_IF_ERROR(check_memory(engine->plan_, *engine->backend_));
  if (static_cast<std::size_t>(info.vocab) > kMaxVocab)
    return make_error(ErrorCode::kUnsupported,
                      "a vocabulary of {} tokens; sampling takes at most {}", info.vocab,
                      kMaxVocab);
  ModelOptions model_options{options.step_tokens, engine->plan_.context, options.progress};
  VT_TRY(engine->model_, load_model(*file, *engine->backend_, model_options));
  VT_TRY(engine->runner_,
         Runner::create(*engine->model_, *engine->backend_, engine->plan_, options.step_tokens));
  engine->options_ = std::move(options);
  engine->scheduler_ = std::make_unique<Scheduler>(engine->plan_, engine->options_);
  engine->scratch_ = std::make_unique<Scratch>(info.vocab);
  engine->file_ = std::move(file);
  // What a step needs, at the most.
  auto sequences = static_cast<std::size_t>(engine->plan_.sequences);
  engine->records_.resize(kKeptRecords);
  for (StepRecord& r : engine->records_) r.entries.reserve(sequences);
  engine->in_flight_.reserve(engine->options_.commit_delay + 2);
  for (int i = 0; i < engine->options_.commit_delay + 2; ++i) {
    Flight& flight = engine->spare_.emplace_back();
    flight.record.entries.reserve(sequences);
    Batch& batch = flight.batch;
    batch.entries.reserve(sequences);
    batch.copies.reserve(sequences * engine->plan_.groups.size());
    batch.top.reserve(sequences * kMaxTopLogprobs);
  }
  return engine;
}

Engine::~Engine() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (scheduler_) {
    accept();
    scheduler_->abort_all(FinishReason::kCancelled, "the engine was closed");
  }
}

void Engine::start() {
  thread_ = std::thread([this] { loop(); });
}

void Engine::loop() {
  // Sequences may be there and yet none can run: readers that are behind, a batch that is not full.
  constexpr std::chrono::milliseconds kLookAgain{1};
  bool blocked = false;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      auto woken = [&] { return stop_ || !incoming_.empty(); };
      if (scheduler_->idle() && in_flight_.empty())
        work_.wait(lock, woken), follows_ = false;
      else if (blocked)
        work_.wait_for(lock, kLookAgain, woken), follows_ = false;
      if (stop_) return;
    }
    blocked = !step();
  }
}

// The heart of the program. Where the backend queues its work, this step runs while the results of
// the one before are looked at.
bool Engine::step() {
  accept();
  std::int64_t start = now_ns();
  Flight flight = std::move(spare_.back());
  spare_.pop_back();
  bool settle = false;
  {
    std::lock_guard lock(books_);
    scheduler_->plan(flight.batch, Clock::now());
    settle = scheduler_->settle();
    waiting_.store(scheduler_->waiting());
  }
  if (flight.batch.empty()) {
    spare_.push_back(std::move(flight));
    if (in_flight_.empty()) return false;
    finish(0);
    return true;
  }
  flight.record.start_ns = start;
  flight.record.plan_ns = now_ns() - start;
  launch(flight, settle);
  in_flight_.push_back(std::move(flight));
  finish(settle ? 0 : options_.commit_delay);
  return true;
}

void Engine::launch(Flight& flight, bool& settle) {
  StepRecord& r = flight.record;
  std::int64_t start = now_ns();
  if (options_.poison_pages) runner_->poison(flight.batch);
  runner_->run(flight.batch, step_, std::exchange(follows_, true));
  r.step = step_++;
  r.forward_ns = now_ns() - start;
  r.ops = backend_->take_op_times();
  runner_->count(flight.batch, r);
  record(flight.batch, r);
  flight.collected = false;
  if (runner_->deferred()) return;
  collect(flight);
  // The device does not know what the host draws.
  settle = settle || backend_->asynchronous();
}

// Waits for the step and draws what the device has not.
void Engine::collect(Flight& flight) {
  std::int64_t start = now_ns();
  StepTimes times = runner_->wait(flight.batch);
  std::int64_t through = now_ns();
  Batch& batch = flight.batch;
  runner_->results(
      batch,
      [&](int e, int position, std::span<const float> logits) {
        sample_row(batch, e, position, logits);
      },
      [&](int e, int position, std::span<const float> hidden) {
        pool_row(batch.entries[e], position, hidden);
      });
  flight.record.sample_ns = now_ns() - start;
  for (const OpTime& op : backend_->take_op_times()) flight.record.ops.push_back(op);
  flight.record.wait_ns = backend_->asynchronous() ? through - start : 0;
  flight.record.device_ns = times.busy_ns, flight.record.device_idle_ns = times.idle_ns;
  flight.collected = true;
}

// Commits until `keep` steps are left in flight.
void Engine::finish(int keep) {
  while (static_cast<int>(in_flight_.size()) > keep) {
    Flight flight = std::move(in_flight_.front());
    in_flight_.erase(in_flight_.begin());
    if (!flight.collected) collect(flight);
    StepRecord& r = flight.record;
    std::int64_t start = now_ns();
    {
      std::lock_guard lock(books_);
      scheduler_->account(flight.batch, r);
      scheduler_->commit(flight.batch);
      r.cache_ns = scheduler_->take_cache_ns();
      r.preempted = scheduler_->take_preempted();
    }
    r.commit_ns = now_ns() - start;
    {
      std::lock_guard lock(mutex_);
      std::swap(records_[r.step % kKeptRecords], r);
      ++step_done_;
    }
    spare_.push_back(std::move(flight));
  }
}

void Engine::record(const Batch& batch, StepRecord& r) const {
  r.prefill_tokens = r.decode_tokens = 0;
  r.entries.clear();
  for (const BatchEntry& e : batch.entries) {
    (e.prefill ? r.prefill_tokens : r.decode_tokens) += e.count;
    r.entries.push_back(
        {e.sequence->id, e.prefill ? Phase::kPrefill : Phase::kDecode, e.first, e.count, e.sample});
  }
  r.running = scheduler_->running(), r.waiting = scheduler_->waiting();
  r.pages_copied = static_cast<int>(batch.copies.size());
  r.pages_used = r.pages_cached = 0;
  for (int g = 0; g < scheduler_->cache().groups(); ++g) {
    r.pages_used += scheduler_->cache().pool(g).used();
    r.pages_cached += scheduler_->cache().pool(g).cached();
  }
}

void Engine::accept() {
  std::lock_guard books(books_);
  std::lock_guard lock(mutex_);
  for (auto& sequence : incoming_) scheduler_->add(std::move(sequence));
  incoming_.clear();
  waiting_.store(scheduler_->waiting());
}

void Engine::sample_row(Batch& batch, int e, int position, std::span<const float> logits) {
  BatchEntry& entry = batch.entries[e];
  Sequence& s = *entry.sequence;
  if (!s.finished && s.wants_logits(position)) {
    const auto& wanted = s.request.logit_positions;
    if (std::binary_search(wanted.begin(), wanted.end(), position))
      s.stream->add_logits(position, {logits.begin(), logits.end()});
    if (s.request.prompt_logprobs && position + 1 < s.prompt) {
      PromptLogprobs& out = s.stream->prompt_logprobs_;
      LogitsScan scan = scan_logits(logits);
      std::int32_t next = s.tokens[position + 1];
      out.logprobs[position + 1] = scan.status == LogitsStatus::kOk
                                       ? LogSoftmax(logits, scan).logprob(logits[next])
                                       : -std::numeric_limits<float>::infinity();
      auto& top = out.top[position + 1];
      top.resize(s.request.top_logprobs);
      top.resize(top_logprobs(logits, top, *scratch_));
    }
  }
  int last = entry.count > 0 ? entry.first + entry.count - 1 : entry.first - 1;
  if (!entry.sample || entry.drawn || position != last) return;
  draw_token(entry, position, logits);
  if (int k = s.request.top_logprobs; k > 0) {
    entry.top = static_cast<int>(batch.top.size());
    batch.top.resize(batch.top.size() + k, {-1, 0});
    top_logprobs(logits, std::span(batch.top).last(k), *scratch_);
  }
  runner_->set_last_token(s.slot, std::max(entry.sampled, 0));
}

// Like the history, the matcher runs ahead of what is committed: it has seen what was sampled.
void Engine::draw_token(BatchEntry& entry, int position, std::span<const float> logits) {
  Sequence& s = *entry.sequence;
  DrawSpec draw{s.seed, static_cast<std::uint32_t>(s.choice),
                static_cast<std::uint64_t>(position) + 1, s.request.logprobs};
  const bool early = position + 1 - s.prompt < s.request.min_tokens;
  if (early) draw.banned = s.bans;
  std::shared_ptr<const grammar::TokenMask> mask;
  if (s.matcher) {
    mask = s.matcher->mask();
    const bool may_end = s.matcher->may_end();
    entry.complete = !mask->any && may_end;
    if (entry.complete) return;
    if (!mask->any) {
      entry.status = LogitsStatus::kBarred;
      return;
    }
    draw.allowed = &mask->words;
    if (!may_end && !early) draw.banned = s.ends;
    if (may_end && !early) draw.also_allowed = s.ends;
  }
  if (s.reasoning) draw.forced = s.reasoning->forced();
  Choice choice = s.chain->sample(logits, s.history, draw, *scratch_);
  if (s.reasoning && choice.status == LogitsStatus::kOk) s.reasoning->accept(choice.token);
  entry.status = choice.status;
  entry.sampled = choice.token;
  entry.logprob = choice.logprob;
  if (!s.matcher || choice.status != LogitsStatus::kOk) return;
  const bool ends = std::find(s.ends.begin(), s.ends.end(), choice.token) != s.ends.end();
  if (!ends && !s.matcher->accept(choice.token)) entry.status = LogitsStatus::kBarred;
}

void Engine::pool_row(BatchEntry& entry, int position, std::span<const float> hidden) {
  Sequence& s = *entry.sequence;
  if (s.finished) return;  // its stream is the reader's
  s.pool.add(position, hidden);
  if (position + 1 == s.prompt) entry.broken = !s.pool.result(s.prompt, s.stream->embedding_);
}

Status Engine::check(const Request& r) const {
  auto within = [](const char* name, std::int64_t value, std::int64_t min,
                   std::int64_t max) -> Status {
    if (value >= min && value <= max) return Ok{};
    return make_error(ErrorCode::kInvalid, "{}: found {}, allowed {} to {}", name, value, min, max);
  };
  int prompt = static_cast<int>(std::min<std::size_t>(r.prompt.size(), 1 << 30));
  int vocab = model_->info().vocab;
  if (prompt == 0)
    return make_error(ErrorCode::kInvalid, "the prompt is empty; at least one token is needed");
  if (prompt > plan_.context || (prompt == plan_.context && r.max_tokens != 0))
    return make_error(
        ErrorCode::kTooLarge,
        "the prompt has {} tokens, the context holds {} for prompt and output together",
        r.prompt.size(), plan_.context);
  for (std::size_t i = 0; i < r.prompt.size(); ++i)
    if (r.prompt[i] < 0 || r.prompt[i] >= vocab)
      return make_error(ErrorCode::kInvalid, "prompt token {} is {}, allowed 0 to {}", i,
                        r.prompt[i], vocab - 1);
  if (r.max_tokens && *r.max_tokens < 0)
    return make_error(ErrorCode::kInvalid, "max_tokens: found {}, allowed 0 or more",
                      *r.max_tokens);
  VT_RETURN_IF_ERROR(r.sampling.check_vocab(static_cast<std::size_t>(vocab)));
  for (int position : r.logit_positions)
    if (position < 0 || position >= prompt)
      return make_error(ErrorCode::kInvalid,
                        "logits of position {} were asked for, the prompt has 0 to {}", position,
                        prompt - 1);
  for (std::int32_t id : r.stop_token_ids)
    VT_RETURN_IF_ERROR(within("stop_token_ids", id, 0, vocab - 1));
  if (r.pooling && r.max_tokens != 0)
    return make_error(ErrorCode::kInvalid, "max_tokens: an embedding has no text, allowed only 0");
  VT_RETURN_IF_ERROR(within("choices", r.choices, 1, r.pooling ? 1 : kMaxChoices));
  VT_RETURN_IF_ERROR(within("top_logprobs", r.top_logprobs, 0, std::min(kMaxTopLogprobs, vocab)));
  VT_RETURN_IF_ERROR(within("min_tokens", r.min_tokens, 0, plan_.context));
  VT_RETURN_IF_ERROR(within("priority", r.priority, -1000, 1000));
  if (!(r.weight > 0 && r.weight <= 1e6))
    return make_error(ErrorCode::kInvalid, "weight: found {}, allowed above 0 to 1e6", r.weight);
  if (r.timeout && r.timeout->count() <= 0)
    return make_error(ErrorCode::kInvalid, "timeout: found {} ms, allowed 1 or more",
                      r.timeout->count());
  return Ok{};
}

std::unique_ptr<Sequence> Engine::make_sequence(const Request& request, int choice,
                                                std::uint64_t seed) const {
  auto s = std::make_unique<Sequence>();
  int prompt = static_cast<int>(request.prompt.size()), P = plan_.page_size;
  s->request = request;
  std::sort(s->request.logit_positions.begin(), s->request.logit_positions.end());
  s->prompt = s->prefill_end = s->account.usage.prompt_tokens = prompt;
  s->max_output = std::min(request.max_tokens.value_or(plan_.context), plan_.context - prompt);
  int length = prompt + s->max_output;
  s->tokens.reserve(length);
  s->tokens = request.prompt;
  s->bans = request.stop_token_ids;
  const auto& eos = file_->generation().eos_ids;
  s->bans.insert(s->bans.end(), eos.begin(), eos.end());
  s->ends = request.ignore_eos ? request.stop_token_ids : s->bans;
  for (const CacheGroup& g : plan_.groups) s->tables.emplace_back(P, g.spec.window, length);
  s->root = scheduler_->hasher().root(request.cache_salt);
  s->keys.reserve(length / P);
  for (int i = 0; (i + 1) * P <= prompt; ++i)
    s->keys.push_back(scheduler_->hasher().extend(
        i == 0 ? s->root : s->keys.back(),
        std::span(s->tokens).subspan(static_cast<std::size_t>(i) * P, P)));
  s->chain = std::make_unique<Chain>(request.sampling);
  bool bans = request.min_tokens > 0 && !s->bans.empty();
  if (!request.logprobs && request.top_logprobs == 0 && !bans && !request.constraint &&
      !request.reasoning)
    s->device_draw = s->chain->on_device();
  s->waits_for_host = backend_->asynchronous() && !s->device_draw;
  if (s->chain->uses_history())
    s->history = SamplerState(request.prompt, s->max_output, model_->info().vocab);
  if (request.reasoning) s->reasoning.emplace(*request.reasoning);
  if (request.constraint) s->matcher.emplace(request.constraint);
  if (request.pooling) s->pool = Pool(*request.pooling, model_->info().dim);
  s->seed = seed;
  s->choice = s->account.choice = choice;
  s->stream = std::make_shared<TokenStream>();
  s->stream->reserve(request, s->max_output);
  if (request.pooling) s->stream->embedding_.resize(model_->info().dim);
  s->submitted = Clock::now();
  if (request.timeout) s->deadline = s->submitted + *request.timeout;
  s->rank = std::chrono::nanoseconds(s->submitted.time_since_epoch() +
                                     request.priority * FairQueue::kAgeing)
                .count();
  s->account.label = request.label;
  s->account.tenant = request.tenant;
  s->account.priority = request.priority;
  s->account.submitted_unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count();
  return s;
}

Result<std::shared_ptr<TokenStream>> Engine::submit(Request request) {
  request.choices = 1;
  VT_TRY(auto streams, submit_choices(std::move(request)));
  return streams[0];
}

Result<std::vector<std::shared_ptr<TokenStream>>> Engine::submit_choices(Request request) {
  VT_RETURN_IF_ERROR(check(request));
  auto full = [&] {
    return static_cast<int>(incoming_.size()) + waiting_.load() >= options_.max_queue;
  };
  auto busy = [&] {
    ++rejected_;
    return make_error(ErrorCode::kBusy, "the queue is full: {} requests wait", options_.max_queue);
  };
  {
    // Asked before the work of making sequences, which a flood should not cost.
    std::lock_guard lock(mutex_);
    if (full()) return busy();
  }
  std::uint64_t seed = request.sampling.seed().value_or(0);
  if (!request.sampling.seed()) seed = draw_seed();
  std::vector<std::shared_ptr<TokenStream>> streams;
  auto first = make_sequence(request, 0, seed);
  streams.push_back(first->stream);
  for (int i = 1; i < request.choices; ++i) {
    first->forks.push_back(make_sequence(request, i, seed));
    streams.push_back(first->forks.back()->stream);
  }
  {
    std::lock_guard lock(mutex_);
    if (full()) return busy();
    first->id = first->account.id = next_id_++;
    for (auto& f : first->forks) f->id = f->account.id = next_id_++;
    incoming_.push_back(std::move(first));
  }
  work_.notify_one();
  return streams;
}

int Engine::retry_after_seconds() const {
  std::lock_guard lock(books_);
  double rate = scheduler_->finish_rate(Clock::now());
  double seconds = rate > 0 ? scheduler_->waiting() / rate : 1;
  return static_cast<int>(std::clamp(std::ceil(seconds), 1.0, 600.0));
}

std::vector<StepRecord> Engine::records() const {
  std::lock_guard lock(mutex_);
  std::vector<StepRecord> out;
  std::uint64_t end = step_done_;
  for (std::uint64_t i = end > kKeptRecords ? end - kKeptRecords : 0; i < end; ++i)
    out.push_back(records_[i % kKeptRecords]);
  return out;
}

Snapshot Engine::snapshot() const {
  Snapshot out{.max_sequences = plan_.sequences,
               .step_tokens = options_.step_tokens,
               .max_queue = options_.max_queue,
               .context = plan_.context,
               .policy = policy_name(options_.policy),
               .pools = {},
               .running = {},
               .waiting = {}};
  Clock::time_point now = Clock::now();
  out.uptime_s = std::chrono::duration<double>(now - started_).count();
  {
    std::lock_guard lock(mutex_);
    out.step = step_done_;
  }
  std::lock_guard lock(books_);
  scheduler_->fill(out, now);
  return out;
}

Metrics Engine::metrics() const {
  std::uint64_t rejected = 0;
  {
    std::lock_guard lock(mutex_);
    rejected = rejected_;
  }
  std::lock_guard lock(books_);
  Metrics out = scheduler_->metrics();
  out.rejected = rejected;
  return out;
}

std::vector<Account> Engine::accounts() const {
  std::lock_guard lock(books_);
  std::vector<Account> out = scheduler_->accounts();
  std::sort(out.begin(), out.end(), [](const Account& a, const Account& b) { return a.id < b.id; });
  return out;
}

std::vector<int> Engine::pages_used() const {
  std::lock_guard lock(books_);
  std::vector<int> used;
  for (int g = 0; g < scheduler_->cache().groups(); ++g)
    used.push_back(scheduler_->cache().pool(g).used());
  return used;
}

void Engine::check_integrity() const {
  std::lock_guard lock(books_);
  scheduler_->check_integrity();
}

}  // namespace vitrine
