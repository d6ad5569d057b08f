#include "engine/engine.h"

#include <algorithm>

#include "sampling/rng.h"
#include "sampling/weight.h"

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
  VT_TRY(engine->backend_, create_backend(options.backend, {options.threads, options.isa}));
  // Counted first: a context or a size that cannot be is refused before anything is loaded.
  ModelInfo info;
  VT_TRY(engine->plan_, plan_memory(*file, options, &info));
  VT_RETURN_IF_ERROR(check_memory(engine->plan_));
  if (static_cast<std::size_t>(info.vocab) > kMaxVocab)
    return make_error(ErrorCode::kUnsupported,
                      "a vocabulary of {} tokens; sampling takes at most {}", info.vocab,
                      kMaxVocab);
  ModelOptions model_options{options.step_tokens, engine->plan_.context, options.progress};
  VT_TRY(engine->model_, load_model(*file, *engine->backend_, model_options));
  VT_TRY(engine->runner_,
         Runner::create(*engine->model_, *engine->backend_, engine->plan_, options.step_tokens));
  engine->scheduler_ =
      std::make_unique<Scheduler>(engine->plan_, options.step_tokens, file->generation().eos_ids);
  engine->scratch_ = std::make_unique<Scratch>(info.vocab);
  engine->records_.reserve(kKeptRecords);
  engine->file_ = std::move(file);
  engine->options_ = std::move(options);
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
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (stop_) return;
      if (scheduler_->idle() && in_flight_.empty())
        work_.wait(lock, [&] { return stop_ || !incoming_.empty(); });
      if (stop_) return;
    }
    step();
  }
}

// The heart of the program.
bool Engine::step() {
  accept();
  StepRecord r{.step = step_, .start_ns = now_ns()};
  Batch batch;
  if (!spare_.empty()) batch = std::move(spare_.back()), spare_.pop_back();
  scheduler_->plan(batch);
  if (batch.empty()) {
    spare_.push_back(std::move(batch));
    if (in_flight_.empty()) return false;
    commit();
    return true;
  }
  std::int64_t planned = now_ns();
  runner_->run(batch);
  std::int64_t ran = now_ns();
  sample(batch);
  std::int64_t sampled = now_ns();
  r.plan_ns = planned - r.start_ns, r.forward_ns = ran - planned, r.sample_ns = sampled - ran;
  runner_->count(batch, r);
  scheduler_->account(batch, sampled - r.start_ns);
  in_flight_.push_back(std::move(batch));
  const Batch& kept = in_flight_.back();
  for (const BatchEntry& e : kept.entries) {
    bool prefill = e.first < e.sequence->prompt;
    (prefill ? r.prefill_tokens : r.decode_tokens) += e.count;
    r.entries.push_back(
        {e.sequence->id, prefill ? Phase::kPrefill : Phase::kDecode, e.first, e.count, e.sample});
  }
  if (static_cast<int>(in_flight_.size()) > options_.commit_delay) commit();
  r.commit_ns = now_ns() - sampled;
  std::lock_guard lock(mutex_);
  if (records_.size() < kKeptRecords)
    records_.push_back(std::move(r));
  else
    records_[step_ % kKeptRecords] = std::move(r);
  ++step_;
  return true;
}

void Engine::accept() {
  std::lock_guard lock(mutex_);
  for (auto& sequence : incoming_) scheduler_->add(std::move(sequence));
  incoming_.clear();
}

void Engine::sample(Batch& batch) {
  runner_->for_each_logits(batch, [&](int e, int position, std::span<const float> logits) {
    BatchEntry& entry = batch.entries[e];
    Sequence& s = *entry.sequence;
    const auto& wanted = s.request.logit_positions;
    if (!s.finished && std::binary_search(wanted.begin(), wanted.end(), position))
      s.stream->add_logits(position, {logits.begin(), logits.end()});
    if (!entry.sample || position != entry.first + entry.count - 1) return;
    DrawSpec draw{s.seed, s.request.choice_index, static_cast<std::uint64_t>(position) + 1,
                  s.request.logprobs};
    Choice choice = s.chain->sample(logits, s.history, draw, *scratch_);
    entry.status = choice.status;
    entry.sampled = choice.token;
    entry.logprob = choice.logprob;
    runner_->set_last_token(s.slot, choice.status == LogitsStatus::kOk ? choice.token : 0);
  });
}

void Engine::commit() {
  Batch batch = std::move(in_flight_.front());
  in_flight_.pop_front();
  scheduler_->commit(batch);
  spare_.push_back(std::move(batch));
}

Result<std::unique_ptr<Sequence>> Engine::make_sequence(Request request) const {
  auto s = std::make_unique<Sequence>();
  int prompt = static_cast<int>(std::min<std::size_t>(request.prompt.size(), 1 << 30));
  int vocab = model_->info().vocab;
  if (prompt == 0)
    return make_error(ErrorCode::kInvalid, "the prompt is empty; at least one token is needed");
  if (prompt > plan_.context || (prompt == plan_.context && request.max_tokens != 0))
    return make_error(
        ErrorCode::kTooLarge,
        "the prompt has {} tokens, the context holds {} for prompt and output together",
        request.prompt.size(), plan_.context);
  for (std::size_t i = 0; i < request.prompt.size(); ++i)
    if (request.prompt[i] < 0 || request.prompt[i] >= vocab)
      return make_error(ErrorCode::kInvalid, "prompt token {} is {}, allowed 0 to {}", i,
                        request.prompt[i], vocab - 1);
  if (request.max_tokens && *request.max_tokens < 0)
    return make_error(ErrorCode::kInvalid, "max_tokens: found {}, allowed 0 or more",
                      *request.max_tokens);
  VT_RETURN_IF_ERROR(request.sampling.check_vocab(static_cast<std::size_t>(vocab)));
  for (int position : request.logit_positions)
    if (position < 0 || position >= prompt)
      return make_error(ErrorCode::kInvalid,
                        "logits of position {} were asked for, the prompt has 0 to {}", position,
                        prompt - 1);
  std::sort(request.logit_positions.begin(), request.logit_positions.end());
  s->prompt = s->usage.prompt_tokens = prompt;
  s->max_output = std::min(request.max_tokens.value_or(plan_.context), plan_.context - prompt);
  s->tokens = request.prompt;
  s->tokens.reserve(static_cast<std::size_t>(prompt) + s->max_output);
  s->chain = std::make_unique<Chain>(request.sampling);
  if (s->chain->uses_history()) s->history = SamplerState(request.prompt, s->max_output, vocab);
  s->seed = request.sampling.seed().value_or(0);
  if (!request.sampling.seed()) s->seed = draw_seed();
  s->stream = std::make_shared<TokenStream>();
  s->request = std::move(request);
  s->submitted = Clock::now();
  return s;
}

Result<std::shared_ptr<TokenStream>> Engine::submit(Request request) {
  VT_TRY(auto sequence, make_sequence(std::move(request)));
  auto stream = sequence->stream;
  {
    std::lock_guard lock(mutex_);
    sequence->id = next_id_++;
    incoming_.push_back(std::move(sequence));
  }
  work_.notify_one();
  return stream;
}

std::vector<StepRecord> Engine::records() const {
  std::lock_guard lock(mutex_);
  std::vector<StepRecord> out = records_;
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return out;
}

std::vector<int> Engine::pages_used() const {
  std::vector<int> used;
  for (int g = 0; g < scheduler_->groups(); ++g) used.push_back(scheduler_->pool(g).used());
  return used;
}

}  // namespace vitrine
