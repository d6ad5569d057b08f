#include "engine/scheduler.h"

#include <algorithm>
#include <array>
#include <new>
#include <tuple>
#include <utility>

#include "base/process_clock.h"
#include "engine/cache_groups.h"

namespace vitrine {
namespace {

// place() turns one into the other.
static_assert(static_cast<int>(CacheMiss::kNone) == static_cast<int>(MissKind::kNone) &&
              static_cast<int>(CacheMiss::kNew) == static_cast<int>(MissKind::kNew) &&
              static_cast<int>(CacheMiss::kDiffers) == static_cast<int>(MissKind::kDiffers) &&
              static_cast<int>(CacheMiss::kEvicted) == static_cast<int>(MissKind::kEvicted) &&
              static_cast<int>(CacheMiss::kWindow) == static_cast<int>(MissKind::kWindow));

}  // namespace

Scheduler::Scheduler(const MemoryPlan& plan, const EngineOptions& options, ModelSource* guesses)
    : plan_(plan),
      options_(options),
      cache_(cache_groups(plan), plan.page_size),
      speculator_(options, plan.sequences, guesses) {
  queue_.reserve(options.max_queue + plan.sequences);
  orphans_.reserve(options.max_queue + plan.sequences);
  for (int slot = plan.sequences - 1; slot >= 0; --slot) free_slots_.push_back(slot);
  by_slot_.resize(plan.sequences);
  running_.reserve(plan.sequences);
  committed_.reserve(plan.sequences);
  prefills_.reserve(plan.sequences);
}

void Scheduler::add(std::unique_ptr<Sequence> sequence) noexcept {
  const std::size_t all = inside_ + 1 + sequence->forks.size();
  sequence->account.came_before = ledger_.metrics().steps;
  try {
    if (orphans_.capacity() < all) {
      queue_.reserve(2 * all);
      orphans_.reserve(2 * all);
    }
    queue_.enter(*sequence);
  } catch (const std::bad_alloc&) {
    return abort(*sequence, FinishReason::kError, kOutOfMemory);
  }
  inside_ = all;
  for (auto& f : sequence->forks) queue_.enter(*f);
  queue_.push(std::move(sequence));
}

// About mixed_step_ms's worth, by the measured rate.
int Scheduler::mixed_rows() const {
  const double ns_per_token = ledger_.prefill_ns_per_token();
  if (options_.mixed_step_ms <= 0 || ns_per_token <= 0) return options_.step_tokens;
  const double rows = options_.mixed_step_ms * 1e6 / ns_per_token;
  return std::min(std::max(16, static_cast<int>(std::min<double>(rows, options_.step_tokens))),
                  options_.step_tokens);
}

// Rows of sequences that decode.
int Scheduler::most_decoding(bool prefills) const {
  if (!queue_.shared()) return options_.step_tokens;
  const int rows = mixed_rows();
  return prefills ? std::min((rows + 1) / 2, options_.step_tokens) : rows;
}

void Scheduler::plan(Batch& batch, Clock::time_point now) {
  batch.clear();
  settle_ = false;
  ++plans_;
  set_time(now);
  end_overdue(now);
  admit(now);
  prefills_.clear();
  for (const auto& s : running_)
    if (s->prefilling() && !s->finished && !s->resting && !s->paused())
      prefills_.push_back(s.get());
  const int rows = mixed_rows(), half = (rows + 1) / 2;
  const bool shared = queue_.shared();
  if (speculator_.on()) {
    speculator_.propose(running_, next_shape(), batch);
    settle_ = settle_ || speculator_.settles();
  }
  plan_decode(batch, most_decoding(!prefills_.empty()));
  // A long prompt must not hold up decoding.
  int budget = options_.step_tokens - batch.tokens;
  if (shared)
    budget = std::min(budget, std::max({16, half, rows - batch.tokens}));
  else if (batch.tokens > 0)
    budget = std::min(budget, rows);
  plan_prefill(batch, budget);
  list_absent(batch, now);
  requeue_preempted();
}

bool Scheduler::overdue(Sequence& s, Clock::time_point now) {
  if (s.finished) return false;
  if (s.beams) return beams_overdue(s, now);
  if (s.stream->end_asked() != TokenStream::End::kNone)
    finish(s, s.stream->end_asked() == TokenStream::End::kStop ? FinishReason::kStop
                                                               : FinishReason::kCancelled);
  else if ((s.deadline && now >= *s.deadline) || held_too_long(s, now))
    finish(s, FinishReason::kTimeout);
  return s.finished;
}

bool Scheduler::held_too_long(Sequence& s, Clock::time_point now) {
  if (!s.held())
    s.held_since.reset();
  else if (!s.held_since)
    s.held_since = now;
  else
    return now - *s.held_since >= std::chrono::milliseconds(options_.hold_timeout_ms);
  return false;
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
  int ready = 0;
  for (const auto& s : queue_.waiting()) {
    if (s->paused()) continue;
    if (now - s->submitted >= std::chrono::milliseconds(options_.static_wait_ms)) return true;
    ++ready;
  }
  return ready >= plan_.sequences;
}

// Nobody waits for one that its reader holds, or is slow to read.
bool Scheduler::batch_runs() const {
  return std::any_of(running_.begin(), running_.end(), [](const auto& s) { return !s->paused(); });
}

void Scheduler::admit(Clock::time_point now) {
  blocked_ = {};
  if (options_.policy == Policy::kStatic && (batch_runs() || !batch_is_full(now))) {
    if (Sequence* s = queue_.best(now)) block(*s, Wait::kPolicy, now);
    return;
  }
  // Beams leave several places at once, in which others fit that lost theirs: who lost it in this plan does not come
  // back in it, or some would chase each other round.
  const auto chased = [this](const Sequence& s) { return s.preempted && s.starved == plans_; };
  const auto beams_chased = [&](const auto& s) { return s->beams && chased(*s); };
  while (Sequence* s = queue_.best(now)) {
    if (chased(*s) && std::any_of(queue_.waiting().begin(), queue_.waiting().end(), beams_chased))
      return block(*s, Wait::kSeats, now);
    while (free_slots_.size() < static_cast<std::size_t>(s->seats()))
      if (!preempt_for(*s, true)) return block(*s, Wait::kSeats, now);
    // Nobody overtakes: a large sequence is not passed by small ones for ever.
    if (!place(*s)) return block(*s, Wait::kPages, now);
    start(queue_.pop(s), now);
  }
  blocked_ = {};
}

void Scheduler::block(Sequence& s, Wait reason, Clock::time_point now) {
  blocked_.reason = reason, blocked_.sequence = s.id;
  if (reason != Wait::kPages) blocked_.needed = blocked_.available = 0;
  wait_behind(s, now);
  if (s.preempted) return;
  s.account.life.turn(process_ns(now), LifeKind::kQueue,
                      reason == Wait::kSeats   ? LifeCause::kSeats
                      : reason == Wait::kPages ? LifeCause::kPages
                                               : LifeCause::kPolicy);
  if (!s.first_since) s.first_since = now;
  s.account.queue.reason = reason;
  s.account.queue.needed = blocked_.needed, s.account.queue.available = blocked_.available;
}

// Holds what the cache has of the sequence, if there is room for the rest.
bool Scheduler::place(Sequence& s) {
  std::span<const PrefixKey> keys(s.keys);
  const int reusable = s.may_reuse();
  const bool reuse = options_.prefix_cache && reusable >= 0;
  const int possible = reuse ? reusable : s.prefill_end - 1;
  keys = keys.first(std::min<std::size_t>(keys.size(), possible / plan_.page_size));
  int pages = 0;
  {
    Stopwatch watch(ledger_.prefix_ns()), mine(s.account.cached_ns);
    if (reuse) pages = cache_.match(keys);
    cache_.adopt(keys, pages, s.tables);
  }
  if (pages > 0) tell_held(PageOp::kAdopt, s);
  while (!fits(s))
    if (!preempt_for(s, true)) {
      release_pages(s);
      return false;
    }
  s.scheduled = s.computed = pages * plan_.page_size;
  s.named = pages;
  ledger_.looked_up(s, s.scheduled);
  if (s.preempted) {
    ledger_.recomputes(s, s.prefill_end - s.scheduled);
    return true;
  }
  CacheAccount& c = s.account.cache;
  c.cached = s.account.usage.cached_tokens = c.position = s.scheduled;
  c.possible = static_cast<int>(keys.size()) * plan_.page_size;
  c.miss = CacheMiss::kBypassed;
  if (reuse) {
    Stopwatch watch(ledger_.prefix_ns());
    Miss miss = cache_.explain(keys, s.root, s.tokens, pages);
    c.miss = static_cast<CacheMiss>(miss.kind);
    c.position = miss.position, c.here = miss.here, c.there = miss.there;
  }
  return true;
}

// Room for what is to be computed now, one token, and a page for each that is running already.
bool Scheduler::fits(const Sequence& s) {
  for (int g = 0; g < cache_.groups(); ++g) {
    int length = std::min(s.prefill_end + 1, plan_.context);
    int pages = (length + plan_.page_size - 1) / plan_.page_size;
    int needed = std::min(pages, plan_.groups[g].pages_per_sequence) - s.tables[g].held();
    if (s.beams) needed += pages_of_others(s);
    blocked_.needed = needed + running(), blocked_.available = cache_.pool(g).available();
    if (blocked_.needed > blocked_.available) return false;
  }
  return true;
}

void Scheduler::start(std::unique_ptr<Sequence> s, Clock::time_point now) {
  Sequence& first = *s;
  sit_down(std::move(s), now, first.computed);
  if (first.beams) seat_others(first, now);
}

void Scheduler::sit_down(std::unique_ptr<Sequence> s, Clock::time_point now, int cached) {
  seat(*s);
  changes_.admitted({s->id, s->slot, cached, s->computed});
  ledger_.admitted(*s, now);
  s->account.life.rest(process_ns(now));
  s->preempted = false;
  auto at = std::upper_bound(running_.begin(), running_.end(), s,
                             [](const auto& a, const auto& b) { return a->rank < b->rank; });
  running_.insert(at, std::move(s));
}

void Scheduler::seat(Sequence& s) {
  s.slot = free_slots_.back();
  free_slots_.pop_back();
  by_slot_[s.slot] = &s;
  queue_.seat(s);
  if (speculator_.on()) speculator_.begin(s);
}

// ---- planning

void Scheduler::draft() {
  if (speculator_.on()) speculator_.draft(running_, next_shape());
}

// The next step without guesses, by the sequences that run now.
StepShape Scheduler::next_shape() const {
  StepShape shape;
  int prompts = 0;
  bool prefills = false;
  for (const auto& s : running_) {
    if (s->finished || s->slot < 0 || s->paused()) continue;
    if (s->prefilling())
      prompts += s->prefill_end - s->scheduled, prefills = true;
    else
      shape.decoding += !s->waits() && s->left() > 0;
  }
  shape.room = most_decoding(prefills) - shape.decoding;
  shape.rows = shape.decoding + std::min(mixed_rows(), prompts);
  return shape;
}

// Guesses take no page from a sequence: one is left for each of the others. A cached page goes for them some tokens
// before it would for the text; a cache that has filled all pages must not cut every draft at the end of a page.
int Scheduler::guesses_with_room(const Sequence& s) const {
  for (auto count = static_cast<int>(s.draft.size()); count > 0; --count) {
    bool room = true;
    for (int g = 0; g < cache_.groups() && room; ++g) {
      const int needed = s.tables[g].needed(cache_.pool(g), s.scheduled, s.scheduled + 1 + count);
      room = needed == 0 || needed + running() - 1 <= cache_.pool(g).available();
    }
    if (room) return count;
  }
  return 0;
}

void Scheduler::plan_decode(Batch& batch, int most) {
  std::size_t n = running_.size(), first = n > 0 ? turn_ % n : 0;
  for (std::size_t i = 0; i < n; ++i) {
    Sequence& s = *running_[(first + i) % n];
    if (s.prefilling() || s.finished || s.slot < 0 || s.paused()) continue;
    const int left = s.left();
    if (left <= 0 || s.waits()) continue;
    if (batch.tokens >= most) {
      turn_ = first + i;
      return;
    }
    if (!s.draft.empty()) {
      const int guesses = std::min({left - 1, most - batch.tokens - 1, guesses_with_room(s)});
      s.draft.resize(std::min<std::size_t>(s.draft.size(), guesses));
    }
    schedule(batch, s, 1 + static_cast<int>(s.draft.size()));
  }
  turn_ = 0;
}

// By tenant and rank, kPartialPrefills of a tenant at a time: a short prompt gets all it needs, long
// ones share the rest.
void Scheduler::plan_prefill(Batch& batch, int budget) {
  std::sort(prefills_.begin(), prefills_.end(), [&](const Sequence* a, const Sequence* b) {
    return std::tuple(queue_.served(*a), queue_.load(*a), a->tenant, a->rank, a->id) <
           std::tuple(queue_.served(*b), queue_.load(*b), b->tenant, b->rank, b->id);
  });
  auto next = prefills_.begin();
  while (budget > 0 && next != prefills_.end()) {
    std::array<Sequence*, kPartialPrefills> some{};
    int n = 0;
    for (const int tenant = (*next)->tenant;
         next != prefills_.end() && n < kPartialPrefills && (*next)->tenant == tenant; ++next)
      some[n++] = *next;
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
  bool has_room = true;
  for (int g = 0; g < cache_.groups(); ++g)
    has_room = has_room && s.tables[g].has_room(cache_.pool(g), s.scheduled, end);
  if (!has_room && !take_pages(batch, s, end)) {
    s.starved = plans_;
    return false;
  }
  batch.entries.push_back({.sequence = &s,
                           .first = s.scheduled,
                           .count = count,
                           .row = batch.tokens,
                           .prefill = s.prefilling(),
                           .again = std::clamp(s.reached - s.scheduled, 0, count)});
  score_rows(batch, s);
  s.scheduled = end;
  batch.tokens += count;
  ++s.in_flight;
  s.planned = plans_;
  queue_.charge(s, count);
  if (end >= s.prefill_end && !s.forks.empty()) fork(batch, s);
  return true;
}

// Lists the rows of the last entry that are scored.
void Scheduler::score_rows(Batch& batch, const Sequence& s) const {
  BatchEntry& entry = batch.entries.back();
  const int index = static_cast<int>(batch.entries.size()) - 1;
  for (int i = 0; i < entry.count; ++i) {
    const int position = entry.first + i, row = entry.row + i;
    const bool draw = position + 1 >= s.prefill_end && s.max_output > 0 &&
                      (!s.beams || position + 1 >= static_cast<int>(s.tokens.size()));
    const bool report = s.wants_logits(position);
    if (draw || report) batch.scores.push_back({index, row, position, draw, report});
    if (s.wants_hidden(position)) batch.pools.push_back({index, row, position});
    entry.draws += draw;
  }
}

// The prompt is in the pages now: the other choices share them and draw from the same row. Those
// for which there is no room wait in the queue and find the prompt in the cache.
void Scheduler::fork(Batch& batch, Sequence& s) {
  const int row = batch.tokens - 1;  // the prompt's last
  for (auto& f : s.forks) {
    f->account.life.follow(s.account.life, s.account.stamps.admitted);
    f->account.life.turn(s.account.stamps.admitted, LifeKind::kQueue, LifeCause::kPrompt, s.id);
    bool room = !free_slots_.empty() && batch.tokens + batch.forks < options_.step_tokens &&
                s.max_output > 0;
    if (!room) {
      orphans_.push_back(std::move(f));
      continue;
    }
    for (int g = 0; g < cache_.groups(); ++g) f->tables[g].share(cache_.pool(g), s.tables[g]);
    tell_held(PageOp::kShare, *f);
    f->scheduled = s.prefill_end;
    f->named = f->scheduled / plan_.page_size;
    f->account.usage.cached_tokens = f->account.cache.cached = f->scheduled;
    f->account.cache.possible = f->account.cache.position = f->scheduled;
    f->account.cache.miss = CacheMiss::kNone;
    f->account.timings.queue_ms = s.account.timings.queue_ms;
    f->account.pages = f->pages_held();
    f->account.stamps.admitted = s.account.stamps.admitted;
    seat(*f);
    changes_.admitted({f->id, f->slot, f->scheduled, f->computed});
    f->in_flight = 1;
    f->planned = plans_;
    const int entry = static_cast<int>(batch.entries.size()), position = f->scheduled - 1;
    batch.entries.push_back(
        {.sequence = f.get(), .first = f->scheduled, .row = row, .draws = 1, .prefill = true});
    batch.scores.push_back({entry, row, position, true, f->wants_logits(position)});
    ++batch.forks;
    orphans_.push_back(std::move(f));
  }
  s.forks.clear();
}

// Those that the positions before `end` lack. False: there are not that many, and it has none of them.
bool Scheduler::take_pages(Batch& batch, Sequence& s, int end) {
  for (int g = 0; g < cache_.groups(); ++g)
    while (s.tables[g].needed(cache_.pool(g), s.scheduled, end) > cache_.pool(g).available())
      if (!preempt_for(s, false)) return false;
  for (int g = 0; g < cache_.groups(); ++g) {
    const std::size_t held = s.tables[g].pages().size();
    const int free = cache_.pool(g).free();
    PageCopy copy = s.tables[g].grow(cache_.pool(g), s.scheduled, end);
    if (copy.to != kNoPage) batch.copies.push_back({g, copy});
    if (copy.to != kNoPage || s.tables[g].pages().size() > held) tell_grown(s, g, held, copy, free);
  }
  s.account.pages = std::max(s.account.pages, s.pages_held());
  return true;
}

// ---- preemption

// Whom to preempt so that `wants` gets on: a paused one, or of those that it may take from the last
// by rank of the tenant with the most seats.
Sequence* Scheduler::victim(const Sequence& wants, bool waits) const {
  Sequence* out = nullptr;
  const Sequence* first = nullptr;
  const auto same = [](const Sequence& a, const Sequence& b) {
    return &a == &b || (a.beams && a.beams == b.beams);
  };
  for (const auto& s : running_) {
    if (s->slot < 0 || s->finished) continue;
    if (first == nullptr) first = s.get();
    if (same(*s, wants)) continue;
    if (s->paused()) return s.get();
    if (!waits && s->pages_held() == 0) continue;
    const bool lower =
        s->rank > wants.rank &&
        (!waits || (s->tenant == wants.tenant && s->request.priority > wants.request.priority));
    // Beams take no seat from another tenant that is not enough: its owner would come back for it.
    const bool enough =
        !waits || static_cast<int>(free_slots_.size()) + s->seats() >= wants.seats();
    if (!lower && (same(*s, *first) || !enough || !queue_.may_take(wants, *s))) continue;
    if (out == nullptr || queue_.load(*s) >= queue_.load(*out)) out = s.get();
  }
  return out;
}

bool Scheduler::preempt_for(const Sequence& wants, bool waits) {
  Sequence* s = victim(wants, waits);
  if (s == nullptr) return false;
  const auto in_flight = [](const Sequence* b) { return b->in_flight > 0; };
  if (in_flight(s) ||
      (s->beams && std::any_of(s->beams->all.begin(), s->beams->all.end(), in_flight))) {
    settle_ = true;
    return false;
  }
  preempt(*s, wants);
  if (waits) requeue_preempted();
  return true;
}

void Scheduler::preempt(Sequence& s, const Sequence& by) {
  if (!s.beams) return preempt_one(s, by, static_cast<int>(s.tokens.size()));
  Beams& b = *s.beams;
  part(b);
  for (Sequence* one : b.all)
    preempt_one(
        *one, by,
        one == &b.first() && b.meet_at > 0 ? b.meet_at : static_cast<int>(one->tokens.size()));
}

void Scheduler::preempt_one(Sequence& s, const Sequence& by, int prefill_end) {
  changes_.preempted({s.id, by.id, s.pages_held(), prefill_end});
  release(s);
  s.account.life.turn(process_ns(), LifeKind::kPreempted, LifeCause::kNone, by.id);
  s.preempted = true;
  s.starved = plans_;
  s.prefill_end = prefill_end;
  s.reached = std::max(s.reached, s.computed);
  s.scheduled = s.computed = s.named = 0;
  s.draft.clear();
  ledger_.preempted(s);
}

// Out of running_ only here, so that planning can walk it while it preempts.
void Scheduler::requeue_preempted() {
  for (auto& s : running_) {
    if (s->slot >= 0) continue;
    if (s->beams && s.get() != &s->beams->first())
      s->beams->first().forks.push_back(std::move(s));
    else
      queue_.push(std::move(s));
  }
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

}  // namespace vitrine
