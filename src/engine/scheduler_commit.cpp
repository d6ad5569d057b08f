// The end of a step: tokens are appended, pages named and given back, sequences ended.
#include <algorithm>
#include <new>

#include "base/process_clock.h"
#include "engine/scheduler.h"

namespace vitrine {

void Scheduler::commit(const Batch& batch, StepRecord& record) {
  ledger_.ran(batch, record);
  for (const Absent& a : batch.absent)
    if (Sequence* s = by_slot_[a.slot]; s != nullptr && s->id == a.sequence && !s->finished)
      s->account.life.turn(record.wall_from_ns, a.kind, a.cause);
  const Clock::time_point now = Clock::now();  // the tokens of a step come together
  set_time(now);
  committed_.clear();
  for (std::size_t i = 0; i < batch.entries.size(); ++i) {
    const BatchEntry& entry = batch.entries[i];
    Sequence& s = *entry.sequence;
    --s.in_flight;
    if (s.finished) continue;  // it ended in an earlier step: the results of this one are dropped
    committed_.push_back(&s);
    s.computed = entry.computed();
    take_back(s, entry);
    const std::size_t tokens = s.tokens.size();
    try {
      take_results(s, batch, entry, now);
    } catch (const std::bad_alloc&) {
      end(s, FinishReason::kError, kOutOfMemory);
    }
    if (i >= record.entries.size()) continue;
    record.entries[i].kept = entry.computed() - entry.first;
    record.entries[i].drawn = static_cast<int>(s.tokens.size() - tokens);
  }
  if (speculator_.on()) {
    speculator_.observe(batch, record);
    ledger_.guessed(record);
  }
  {
    Stopwatch watch(ledger_.prefix_ns());
    for (Sequence* s : committed_) name_pages(*s);
  }
  for (Sequence* s : committed_)
    for (int g = 0; g < cache_.groups(); ++g) {
      BlockTable& table = s->tables[g];
      if (!table.windowed()) continue;
      const int seen =
          std::min(table.first_seen(s->computed), static_cast<int>(table.pages().size()));
      if (seen > table.first()) tell_released(*s, g, table.first(), seen);
      table.release_behind_window(cache_.pool(g), s->computed);
    }
  for (Sequence* s : committed_)
    if (s->beams && !s->finished) advance(*s->beams, record, now);
  reap();
}

void Scheduler::settle(const StepRecord& record) {
  for (const StepEntry& e : record.entries) {
    // Nobody has taken its place since: seats are given when a step is planned.
    Sequence* s = by_slot_[e.slot];
    if (s != nullptr && s->id != e.sequence) s = nullptr;
    ledger_.charge(s, e);
    if (s != nullptr) s->account.life.rest(record.wall_from_ns + record.wall_ns);
  }
  ledger_.settled();
}

// Rows whose guess was wrong leave nothing but K and V, which the sequence gives back.
void Scheduler::take_back(Sequence& s, const BatchEntry& entry) {
  s.draft.clear();
  if (s.computed == entry.first + entry.count) return;
  for (int g = 0; g < cache_.groups(); ++g) {
    const int keep = s.tables[g].kept(s.computed),
              held = static_cast<int>(s.tables[g].pages().size());
    if (keep < held) tell_released(s, g, keep, held);
    s.tables[g].truncate(cache_.pool(g), s.computed);
  }
  s.scheduled = s.computed;
}

void Scheduler::take_results(Sequence& s, const Batch& batch, const BatchEntry& entry,
                             Clock::time_point now) {
  const std::span<const DrawnToken> drawn =
      std::span(batch.drawn).subspan(entry.first_token, entry.tokens);
  for (int i = 0; i < entry.tokens; ++i) {
    // All but the last were guessed.
    append(s, batch, drawn[i], now, i + 1 < entry.tokens ? i : -1);
    if (s.finished) return;
  }
  if (entry.starved)
    end(s, FinishReason::kError, kOutOfMemory);
  else if (entry.complete)
    finish(s, FinishReason::kStop);
  else if (entry.status != LogitsStatus::kOk)
    end(s, FinishReason::kError,
        fmt::format("position {}: {}", entry.draws == 0 ? s.computed : entry.failed_draw(),
                    logits_status_text(entry.status)));
  else if (s.beams)
    s.ranked = s.resting = entry.draws > 0;
  else if (entry.broken)
    finish(s, FinishReason::kError, "the model's hidden states are not finite");
  else if (entry.draws == 0 && s.computed >= s.prompt && s.max_output == 0)
    finish(s, s.request.pooling ? FinishReason::kStop : FinishReason::kLength);
}

void Scheduler::append(Sequence& s, const Batch& batch, const DrawnToken& token,
                       Clock::time_point now, int guess) {
  ledger_.drew(s, now);
  if (s.ends_with(token.id)) return finish(s, FinishReason::kStop, {}, token.id);
  s.tokens.push_back(token.id);
  ledger_.appended(s, guess);
  s.stream->push({token.id, token.logprob, process_ns(now), token.p},
                 token.top < 0 ? nullptr : batch.top.data() + token.top);
  if (s.goes_in_circles())
    finish(s, FinishReason::kStop);
  else if (s.output() >= s.max_output)
    finish(s, FinishReason::kLength);
}

// Full pages get their key, by which later prompts find them.
void Scheduler::name_pages(Sequence& s) {
  const int P = plan_.page_size, known = std::min(s.computed, static_cast<int>(s.tokens.size()));
  for (; (s.named + 1) * P <= known; ++s.named) {
    auto i = static_cast<std::size_t>(s.named);
    std::span<const std::int32_t> tokens(s.tokens.data() + i * P, P);
    const PrefixKey parent = i == 0 ? s.root : s.keys[i - 1];
    if (s.keys.size() == i) s.keys.push_back(hasher_.extend(parent, tokens));
    for (int g = 0; g < cache_.groups() && options_.prefix_cache; ++g) {
      PageId page = s.tables[g].pages()[i];
      if (page == kNoPage || cache_.pool(g).named(page)) continue;
      cache_.pool(g).name(page, s.keys[i], parent, s.named, tokens);
      if (cache_.pool(g).named(page))
        tell(PageOp::kName, s, g, s.named, page, cache_.pool(g).holders(page));
    }
  }
}

// The stream is closed at once; pages and slot go back when no planned step refers to them.
void Scheduler::finish(Sequence& s, FinishReason reason, std::string_view error,
                       std::int32_t stop_token) noexcept {
  s.finished = true;
  Finish end{.reason = reason,
             .error = {},
             .seed = s.seed,
             .stop_token = stop_token,
             .score = s.score,
             .account = {}};
  try {
    end.error = error;
  } catch (const std::bad_alloc&) {
    end.error = kOutOfMemory;  // so short that it needs no memory
  }
  end.account = ledger_.ended(s, reason, end.error);
  changes_.ended(end.account);
  for (auto& f : s.forks) orphans_.push_back(std::move(f));
  s.forks.clear();
  if (s.tenant >= 0) queue_.leave(s), --inside_;
  if (speculator_.on()) speculator_.ended(s);
  s.stream->close(std::move(end));
}

void Scheduler::release(Sequence& s) {
  release_pages(s);
  speculator_.left(s);
  if (s.slot >= 0) free_slots_.push_back(s.slot), by_slot_[s.slot] = nullptr;
  if (s.slot >= 0 && !s.finished) queue_.unseat(s);
  s.slot = -1;
}

void Scheduler::reap() {
  std::erase_if(running_, [&](const std::unique_ptr<Sequence>& s) {
    if (!s->finished || s->in_flight > 0) return false;
    release(*s);
    return true;
  });
}

void Scheduler::abort(Sequence& s, FinishReason reason, std::string_view error) noexcept {
  for (auto& f : s.forks)
    if (!f->finished) finish(*f, reason, error);
  s.forks.clear();
  if (!s.finished) finish(s, reason, error);
  release(s);
}

// From whatever state a step that failed has left them in.
void Scheduler::abort_all(FinishReason reason, std::string_view error) noexcept {
  for (auto* list : {&running_, &queue_.waiting(), &orphans_}) {
    for (auto& s : *list)
      if (s) abort(*s, reason, error);
    list->clear();
  }
  blocked_ = {};
}

}  // namespace vitrine
