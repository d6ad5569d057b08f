#include "engine/scheduler.h"

#include <algorithm>
#include <array>

namespace vitrine {
namespace {

double ms_since(Clock::time_point start, Clock::time_point now) {
  return std::chrono::duration<double, std::milli>(now - start).count();
}

std::vector<PrefixCache::Group> cache_groups(const MemoryPlan& plan) {
  std::vector<PrefixCache::Group> groups;
  for (const CacheGroup& g : plan.groups) groups.push_back({g.pages, g.spec.window});
  return groups;
}

// place() turns one into the other.
static_assert(static_cast<int>(CacheMiss::kNone) == static_cast<int>(MissKind::kNone) &&
              static_cast<int>(CacheMiss::kNew) == static_cast<int>(MissKind::kNew) &&
              static_cast<int>(CacheMiss::kDiffers) == static_cast<int>(MissKind::kDiffers) &&
              static_cast<int>(CacheMiss::kEvicted) == static_cast<int>(MissKind::kEvicted) &&
              static_cast<int>(CacheMiss::kWindow) == static_cast<int>(MissKind::kWindow));

// Adds the time until its end to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(std::int64_t& sum) : sum_(sum), start_(Clock::now()) {}
  ~Stopwatch() { sum_ += std::chrono::nanoseconds(Clock::now() - start_).count(); }

 private:
  std::int64_t& sum_;
  Clock::time_point start_;
};

}  // namespace

Scheduler::Scheduler(const MemoryPlan& plan, const EngineOptions& options)
    : plan_(plan),
      options_(options),
      cache_(cache_groups(plan), plan.page_size),
      queue_(options.max_queue + plan.sequences) {
  for (int slot = plan.sequences - 1; slot >= 0; --slot) free_slots_.push_back(slot);
  running_.reserve(plan.sequences);
  accounts_.reserve(kKeptAccounts);
  ends_.reserve(64);
}

void Scheduler::add(std::unique_ptr<Sequence> sequence) {
  queue_.enter(*sequence);
  for (auto& f : sequence->forks) queue_.enter(*f);
  queue_.push(std::move(sequence));
}

void Scheduler::plan(Batch& batch, Clock::time_point now) {
  batch.clear();
  settle_ = false;
  end_overdue(now);
  admit(now);
  plan_decode(batch);
  int budget = options_.step_tokens - batch.tokens;
  // A long prompt must not hold up those who decode: what is prefilled beside them takes about
  // mixed_step_ms by the measured rate.
  if (batch.tokens > 0 && options_.mixed_step_ms > 0 && prefill_ns_per_token_ > 0)
    budget = std::min(budget, std::max(16, static_cast<int>(options_.mixed_step_ms * 1e6 /
                                                            prefill_ns_per_token_)));
  plan_prefill(batch, budget);
  requeue_preempted();
}

bool Scheduler::overdue(Sequence& s, Clock::time_point now) {
  if (s.finished) return false;
  if (s.stream->end_asked() != TokenStream::End::kNone)
    finish(s, s.stream->end_asked() == TokenStream::End::kStop ? FinishReason::kStop
                                                               : FinishReason::kCancelled);
  else if (s.deadline && now >= *s.deadline)
    finish(s, FinishReason::kTimeout);
  return s.finished;
}

void Scheduler::end_overdue(Clock::time_point now) {
  for (auto& s : running_) {
    std::erase_if(s->forks, [&](auto& f) { return overdue(*f, now); });
    overdue(*s, now);
  }
  for (auto& s : queue_.waiting()) {
    std::erase_if(s->forks, [&](auto& f) { return overdue(*f, now); });
    overdue(*s, now);
  }
  reap();
  std::erase_if(queue_.waiting(), [](const auto& s) { return s->finished; });
  for (auto& s : orphans_) queue_.push(std::move(s));
  orphans_.clear();
}

// ---- admission

bool Scheduler::batch_is_full(Clock::time_point now) const {
  if (queue_.size() >= plan_.sequences) return true;
  for (const auto& s : queue_.waiting())
    if (now - s->submitted >= std::chrono::milliseconds(options_.static_wait_ms)) return true;
  return false;
}

void Scheduler::admit(Clock::time_point now) {
  if (options_.policy == Policy::kStatic && (!running_.empty() || !batch_is_full(now))) return;
  while (Sequence* s = queue_.best(now)) {
    while (free_slots_.empty())
      if (!preempt_for(*s, true)) return;
    // Nobody overtakes: a large sequence is not passed by small ones for ever.
    if (!place(*s)) return;
    start(queue_.pop(s), now);
  }
}

// Holds what the cache has of the sequence, if there is room for the rest.
bool Scheduler::place(Sequence& s) {
  std::span<const PrefixKey> keys(s.keys);
  keys = keys.first(std::min<std::size_t>(keys.size(), (s.prefill_end - 1) / plan_.page_size));
  bool reuse = options_.prefix_cache && s.may_reuse();
  int pages = 0;
  {
    Stopwatch watch(cache_ns_);
    if (reuse) pages = cache_.match(keys);
    cache_.adopt(keys, pages, s.tables);
  }
  while (!fits(s))
    if (!preempt_for(s, true)) {
      for (int g = 0; g < cache_.groups(); ++g) s.tables[g].release_all(cache_.pool(g));
      return false;
    }
  s.scheduled = s.computed = pages * plan_.page_size;
  s.named = pages;
  metrics_.prefix_queries += s.prefill_end;
  metrics_.prefix_hits += s.scheduled;
  if (s.preempted) {
    s.account.recomputed_tokens += s.prefill_end - s.scheduled;
    metrics_.recomputed_tokens += s.prefill_end - s.scheduled;
    return true;
  }
  CacheAccount& c = s.account.cache;
  c.cached = s.account.usage.cached_tokens = c.position = s.scheduled;
  c.possible = static_cast<int>(keys.size()) * plan_.page_size;
  c.miss = CacheMiss::kBypassed;
  if (reuse) {
    Stopwatch watch(cache_ns_);
    Miss miss = cache_.explain(keys, s.root, s.tokens, pages);
    c.miss = static_cast<CacheMiss>(miss.kind);
    c.position = miss.position, c.here = miss.here, c.there = miss.there;
  }
  return true;
}

// Room for what is to be computed now, one token, and a page for each that is running already.
bool Scheduler::fits(const Sequence& s) const {
  for (int g = 0; g < cache_.groups(); ++g) {
    int length = std::min(s.prefill_end + 1, plan_.context);
    int pages = (length + plan_.page_size - 1) / plan_.page_size;
    int needed = std::min(pages, plan_.groups[g].pages_per_sequence) - s.tables[g].held();
    if (needed + running() > cache_.pool(g).available()) return false;
  }
  return true;
}

void Scheduler::start(std::unique_ptr<Sequence> s, Clock::time_point now) {
  s->slot = free_slots_.back();
  free_slots_.pop_back();
  if (!s->preempted) s->account.timings.queue_ms = ms_since(s->submitted, now);
  s->preempted = false;
  auto at = std::upper_bound(running_.begin(), running_.end(), s,
                             [](const auto& a, const auto& b) { return a->rank < b->rank; });
  running_.insert(at, std::move(s));
}

// ---- planning

void Scheduler::plan_decode(Batch& batch) {
  std::size_t n = running_.size(), first = n > 0 ? turn_ % n : 0;
  for (std::size_t i = 0; i < n; ++i) {
    Sequence& s = *running_[(first + i) % n];
    if (s.prefilling() || s.finished || s.slot < 0 || s.paused()) continue;
    if (s.planned_output() >= s.max_output || (s.waits_for_host && s.in_flight > 0)) continue;
    if (batch.tokens == options_.step_tokens) {
      turn_ = first + i;
      return;
    }
    schedule(batch, s, 1);
  }
  turn_ = 0;
}

// By rank, kPartialPrefills at a time: a short prompt gets all it needs, long ones share the rest.
void Scheduler::plan_prefill(Batch& batch, int budget) {
  auto next = running_.begin();
  while (budget > 0 && next != running_.end()) {
    std::array<Sequence*, kPartialPrefills> some{};
    int n = 0;
    for (; next != running_.end() && n < kPartialPrefills; ++next)
      if ((*next)->prefilling() && !(*next)->finished && (*next)->slot >= 0 && !(*next)->paused())
        some[n++] = next->get();
    std::sort(some.begin(), some.begin() + n, [](const Sequence* a, const Sequence* b) {
      return a->prefill_end - a->scheduled < b->prefill_end - b->scheduled;
    });
    for (int i = 0; i < n && budget > 0; ++i) {
      int share = std::max(1, budget / (n - i));
      int count = std::min(share, some[i]->prefill_end - some[i]->scheduled);
      if (some[i]->slot < 0 || !schedule(batch, *some[i], count)) continue;
      budget = std::min(budget - count, options_.step_tokens - batch.tokens - batch.forks);
    }
  }
}

bool Scheduler::schedule(Batch& batch, Sequence& s, int count) {
  int end = s.scheduled + count;
  if (!ensure_pages(s, s.scheduled, end)) return false;
  for (int g = 0; g < cache_.groups(); ++g) {
    PageCopy copy = s.tables[g].grow(cache_.pool(g), s.scheduled, end);
    if (copy.to != kNoPage) batch.copies.push_back({g, copy});
  }
  s.account.pages = std::max(s.account.pages, s.pages_held());
  BatchEntry entry{.sequence = &s, .first = s.scheduled, .count = count};
  entry.prefill = s.prefilling();
  s.scheduled = end;
  entry.sample = end >= s.prefill_end && s.max_output > 0;
  batch.entries.push_back(entry);
  batch.tokens += count;
  ++s.in_flight;
  queue_.charge(s, count);
  if (end >= s.prefill_end && !s.forks.empty()) fork(batch, s);
  return true;
}

// The prompt is in the pages now: the other choices hold them too and draw from the same row. Those
// for which there is no room wait and find the prompt in the cache.
void Scheduler::fork(Batch& batch, Sequence& s) {
  int source = static_cast<int>(batch.entries.size()) - 1;
  for (auto& f : s.forks) {
    bool room = !free_slots_.empty() && batch.tokens + batch.forks < options_.step_tokens &&
                s.max_output > 0;
    if (!room) {
      orphans_.push_back(std::move(f));
      continue;
    }
    for (int g = 0; g < cache_.groups(); ++g) f->tables[g].share(cache_.pool(g), s.tables[g]);
    f->scheduled = s.prefill_end;
    f->keys = s.keys;
    f->named = f->scheduled / plan_.page_size;
    f->account.usage.cached_tokens = f->account.cache.cached = f->scheduled;
    f->account.cache.possible = f->account.cache.position = f->scheduled;
    f->account.cache.miss = CacheMiss::kNone;
    f->account.timings.queue_ms = s.account.timings.queue_ms;
    f->account.pages = f->pages_held();
    f->slot = free_slots_.back();
    free_slots_.pop_back();
    f->in_flight = 1;
    batch.entries.push_back({.sequence = f.get(),
                             .first = f->scheduled,
                             .count = 0,
                             .source = source,
                             .prefill = true,
                             .sample = true});
    ++batch.forks;
    orphans_.push_back(std::move(f));
  }
  s.forks.clear();
}

bool Scheduler::ensure_pages(Sequence& s, int from, int to) {
  for (int g = 0; g < cache_.groups(); ++g)
    while (s.tables[g].needed(cache_.pool(g), from, to) > cache_.pool(g).available())
      if (!preempt_for(s, false)) return false;
  return true;
}

// ---- preemption

// Whom to preempt so that `wants` gets on. One that runs already may take from any ranked after it;
// one that waits (`by_priority`) only from a lower priority. Stalled readers go first in any case.
Sequence* Scheduler::victim(const Sequence& wants, bool by_priority) const {
  Sequence* out = nullptr;
  for (const auto& s : running_) {
    if (s.get() == &wants || s->slot < 0 || s->finished) continue;
    if (s->paused()) return s.get();
    bool lower = by_priority ? s->request.priority > wants.request.priority
                             : s->rank > wants.rank && s->pages_held() > 0;
    if (lower) out = s.get();
  }
  return out;
}

bool Scheduler::preempt_for(const Sequence& wants, bool by_priority) {
  Sequence* s = victim(wants, by_priority);
  if (s == nullptr) return false;
  if (s->in_flight > 0) {
    settle_ = true;
    return false;
  }
  preempt(*s);
  if (by_priority) requeue_preempted();
  return true;
}

void Scheduler::preempt(Sequence& s) {
  release(s);
  s.preempted = true;
  s.prefill_end = static_cast<int>(s.tokens.size());
  s.scheduled = s.computed = s.named = 0;
  ++s.account.preemptions;
  ++metrics_.preemptions;
  ++preempted_;
}

// Out of running_ only here, so that planning can walk it while it preempts.
void Scheduler::requeue_preempted() {
  for (auto& s : running_)
    if (s->slot < 0) queue_.push(std::move(s));
  std::erase(running_, nullptr);
  for (auto& s : orphans_) {
    if (s->slot < 0) {
      queue_.push(std::move(s));
    } else {
      auto at = std::upper_bound(running_.begin(), running_.end(), s,
                                 [](const auto& a, const auto& b) { return a->rank < b->rank; });
      running_.insert(at, std::move(s));
    }
  }
  orphans_.clear();
}

// ---- results

void Scheduler::account(const Batch& batch, const StepRecord& r) {
  double ns = static_cast<double>(r.plan_ns + r.forward_ns + r.sample_ns);
  int sequences = static_cast<int>(batch.entries.size());
  for (const BatchEntry& entry : batch.entries) {
    if (entry.sequence->finished) continue;  // its account is closed
    Account& a = entry.sequence->account;
    Timings& t = a.timings;
    (entry.prefill ? t.prefill_ms : t.decode_ms) += ns * 1e-6;
    ++(entry.prefill ? t.prefill_steps : t.decode_steps);
    a.batch_mean += (sequences - a.batch_mean) / ++a.steps;
    a.batch_max = std::max(a.batch_max, sequences);
    a.flops += entry.flops;
    a.kv_read_bytes += entry.kv_read_bytes, a.kv_write_bytes += entry.kv_write_bytes;
    a.weight_bytes += static_cast<double>(r.weight_bytes) * entry.count / batch.tokens;
  }
  ++metrics_.steps;
  metrics_.busy_seconds += ns * 1e-9;
  metrics_.step_tokens.add(batch.tokens);
  if (r.prefill_tokens >= 16) {
    double rate = ns / batch.tokens;
    double& mean = prefill_ns_per_token_;
    mean = mean == 0 ? rate : 0.8 * mean + 0.2 * rate;
  }
}

std::int64_t Scheduler::take_cache_ns() {
  metrics_.prefix_seconds += static_cast<double>(cache_ns_) * 1e-9;
  return std::exchange(cache_ns_, 0);
}

void Scheduler::commit(const Batch& batch) {
  for (const BatchEntry& entry : batch.entries) {
    Sequence& s = *entry.sequence;
    --s.in_flight;
    if (s.finished) continue;  // it ended in an earlier step: this one's result is dropped
    s.computed = entry.first + entry.count;
  }
  {
    Stopwatch watch(cache_ns_);
    for (const BatchEntry& entry : batch.entries)
      if (!entry.sequence->finished) name_pages(*entry.sequence);
  }
  Clock::time_point now = Clock::now();  // the tokens of a step come together
  for (const BatchEntry& entry : batch.entries) {
    Sequence& s = *entry.sequence;
    if (s.finished) continue;
    for (int g = 0; g < cache_.groups(); ++g)
      s.tables[g].release_behind_window(cache_.pool(g), s.computed);
    if (entry.sample)
      append(s, batch, entry, now);
    else if (entry.broken)
      finish(s, FinishReason::kError, "the model's hidden states are not finite");
    else if (s.computed >= s.prompt && s.max_output == 0)
      finish(s, s.request.pooling ? FinishReason::kStop : FinishReason::kLength);
  }
  reap();
}

// Full pages become findable.
void Scheduler::name_pages(Sequence& s) {
  int P = plan_.page_size;
  for (; (s.named + 1) * P <= s.computed; ++s.named) {
    auto i = static_cast<std::size_t>(s.named);
    std::span<const std::int32_t> tokens(s.tokens.data() + i * P, P);
    const PrefixKey& parent = i == 0 ? s.root : s.keys[i - 1];
    if (s.keys.size() == i) s.keys.push_back(hasher_.extend(parent, tokens));
    for (int g = 0; g < cache_.groups() && options_.prefix_cache; ++g) {
      PageId page = s.tables[g].pages()[i];
      if (page != kNoPage) cache_.pool(g).name(page, s.keys[i], parent, tokens);
    }
  }
}

void Scheduler::append(Sequence& s, const Batch& batch, const BatchEntry& entry,
                       Clock::time_point now) {
  if (entry.complete) return finish(s, FinishReason::kStop);
  if (entry.status != LogitsStatus::kOk)
    return finish(s, FinishReason::kError,
                  fmt::format("position {}: {}", s.computed, logits_status_text(entry.status)));
  if (s.output() == 0) {
    s.account.timings.ttft_ms = ms_since(s.submitted, now);
    metrics_.time_to_first_token.add(s.account.timings.ttft_ms * 1e-3);
  } else {
    metrics_.inter_token_latency.add(ms_since(s.last_token, now) * 1e-3);
  }
  s.last_token = now;
  if (std::find(s.ends.begin(), s.ends.end(), entry.sampled) != s.ends.end())
    return finish(s, FinishReason::kStop, {}, entry.sampled);
  s.tokens.push_back(entry.sampled);
  ++s.account.usage.completion_tokens;
  ++metrics_.generation_tokens;
  s.stream->push({entry.sampled, entry.logprob, now.time_since_epoch().count()},
                 entry.top < 0 ? nullptr : batch.top.data() + entry.top);
  if (s.output() >= s.max_output) finish(s, FinishReason::kLength);
}

// The stream is closed at once; pages and slot go back when no planned step refers to them.
void Scheduler::finish(Sequence& s, FinishReason reason, const std::string& error,
                       std::int32_t stop_token) {
  s.finished = true;
  Account& a = s.account;
  Timings& t = a.timings;
  t.total_ms = ms_since(s.submitted, Clock::now());
  int computed = std::min(s.computed, s.prompt) - a.usage.cached_tokens;
  if (t.prefill_ms > 0) t.prefill_tok_s = 1e3 * std::max(0, computed) / t.prefill_ms;
  if (t.decode_ms > 0) t.decode_tok_s = 1e3 * t.decode_steps / t.decode_ms;
  a.reason = reason;
  a.error = error;
  measure(s);
  for (auto& f : s.forks) orphans_.push_back(std::move(f));
  s.forks.clear();
  queue_.leave(s);
  s.stream->close({reason, error, s.seed, stop_token, a});
  Account& kept = accounts_.size() < kKeptAccounts ? accounts_.emplace_back()
                                                   : accounts_[ended_ % kKeptAccounts];
  kept = std::move(a);
  Clock::time_point now = Clock::now();
  if (ends_.size() < ends_.capacity())
    ends_.push_back(now);
  else
    ends_[ended_ % ends_.size()] = now;
  ++ended_;
}

void Scheduler::measure(const Sequence& s) {
  const Timings& t = s.account.timings;
  ++metrics_.finished[static_cast<int>(s.account.reason)];
  if (s.account.steps > 0) metrics_.prompt_tokens += s.prompt;
  metrics_.cached_tokens += s.account.usage.cached_tokens;
  metrics_.queue_time.add(t.queue_ms * 1e-3);
  metrics_.prefill_time.add(t.prefill_ms * 1e-3);
  metrics_.decode_time.add(t.decode_ms * 1e-3);
  metrics_.e2e_latency.add(t.total_ms * 1e-3);
  metrics_.prompt_length.add(s.prompt);
  metrics_.generation_length.add(s.output());
}

void Scheduler::release(Sequence& s) {
  for (int g = 0; g < cache_.groups(); ++g) s.tables[g].release_all(cache_.pool(g));
  if (s.slot >= 0) free_slots_.push_back(s.slot);
  s.slot = -1;
}

void Scheduler::reap() {
  std::erase_if(running_, [&](const std::unique_ptr<Sequence>& s) {
    if (!s->finished || s->in_flight > 0) return false;
    release(*s);
    return true;
  });
}

void Scheduler::abort_all(FinishReason reason, const std::string& error) {
  auto end = [&](auto& list) {
    for (auto& s : list) {
      s->in_flight = 0;
      for (auto& f : s->forks)
        if (!f->finished) finish(*f, reason, error);
      s->forks.clear();
      if (!s->finished) finish(*s, reason, error);
    }
  };
  end(running_);
  reap();
  end(queue_.waiting());
  queue_.waiting().clear();
  end(orphans_);
  orphans_.clear();
}

}  // namespace vitrine
