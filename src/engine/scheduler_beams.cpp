// Beams of a request: they sit down, move and end together. See engine/beams.h.
#include <algorithm>
#include <new>

#include "base/process_clock.h"
#include "engine/scheduler.h"

namespace vitrine {

// The others, when the first one has got its seat: as many were free.
void Scheduler::seat_others(Sequence& first, Clock::time_point now) {
  for (auto& s : first.forks) {
    Account& a = s->account;
    if (!s->preempted) {
      a.life.follow(first.account.life, process_ns(now));
      a.usage.cached_tokens = a.cache.cached = a.cache.possible = a.cache.position = s->prompt;
      a.cache.miss = CacheMiss::kNone;
    }
    const int prompt = s->prompt;
    sit_down(std::move(s), now, prompt);
  }
  first.forks.clear();
}

// Pages for a token of each beam, beside those of what the first one computes now.
int Scheduler::pages_of_others(const Sequence& s) const {
  const int P = plan_.page_size, length = static_cast<int>(s.tokens.size());
  return (s.beams->size() - 1) *
         ((std::min(length + 1, plan_.context) + P - 1) / P - std::min(s.prefill_end, length) / P);
}

bool Scheduler::beams_overdue(Sequence& s, Clock::time_point now) {
  Beams& b = *s.beams;
  if (&b.first() != &s) return s.finished;
  bool stop = false;
  if (b.unwanted(stop)) {
    end_beams(b, stop ? FinishReason::kStop : FinishReason::kCancelled);
  } else if ((s.deadline && now >= *s.deadline) || held_too_long(s, now)) {
    b.search.end_now(b.rows());
    answer(b, now, FinishReason::kTimeout);
  }
  return s.finished;
}

// What its rows have led to, once all are there.
void Scheduler::advance(Beams& b, StepRecord& record, Clock::time_point now) {
  if (b.meet_at > 0 && b.first().computed >= b.meet_at) return meet(b, record);
  if (b.meet_at > 0 || !b.ranked()) return;
  b.search.step(b.rows());
  if (b.search.done()) return answer(b, now);
  try {
    if (!move_texts(b, record, now))
      end_beams(b, FinishReason::kError, logits_status_text(LogitsStatus::kBarred));
  } catch (const std::bad_alloc&) {
    end_beams(b, FinishReason::kError, kOutOfMemory);
  }
}

// False: a constraint does not allow what it allowed.
bool Scheduler::move_texts(Beams& b, StepRecord& record, Clock::time_point now) {
  const auto children = b.search.live();
  const auto seats = b.seat_children();
  // Before any of them grows.
  for (std::size_t i = 0; i < children.size(); ++i) {
    const Sequence& from = *b.live[children[i].parent];
    if (seats[i] != &from) copy_text(*seats[i], from);
  }
  for (Sequence* s : b.all) {
    const auto seat = std::find(seats.begin(), seats.end(), s);
    s->ranked = false;
    s->candidates.clear();
    if ((s->resting = seat == seats.end())) {
      retire(*s);
      record.beams.push_back({.sequence = s->id});
      continue;
    }
    const BeamSearch::Child& child = children[static_cast<std::size_t>(seat - seats.begin())];
    if (!s->follow(child.token, kNoShare)) return false;
    s->tokens.push_back(child.token);
    record.beams.push_back({.sequence = s->id,
                            .from = b.live[child.parent]->id,
                            .computed = s->computed,
                            .prefill_end = s->prefill_end,
                            .sum = child.sum});
  }
  b.live.assign(seats.begin(), seats.end());
  b.common = b.agreed(b.common);
  const Sequence& any = b.first();
  for (int i = 0; i < b.returned(); ++i)
    tell_tokens(*b.all[i], std::span(any.tokens).subspan(any.prompt, b.common), now, false);
  for (std::size_t i = 0, at = record.beams.size() - b.all.size(); i < b.all.size(); ++i)
    record.beams[at + i].output = b.all[i]->account.usage.completion_tokens;
  return true;
}

// `to` goes on from the text of `from`, on the same pages.
void Scheduler::copy_text(Sequence& to, const Sequence& from) {
  release_pages(to);
  for (int g = 0; g < cache_.groups(); ++g) to.tables[g].share(cache_.pool(g), from.tables[g]);
  tell_held(PageOp::kShare, to);
  to.account.pages = std::max(to.account.pages, to.pages_held());
  to.scheduled = from.scheduled, to.computed = from.computed;
  to.prefill_end = from.prefill_end, to.reached = from.reached, to.named = from.named;
  to.tokens.assign(from.tokens.begin(), from.tokens.end());
  to.keys.assign(from.keys.begin(), from.keys.end());
  to.copy_progress(from);
}

// It has no text any more.
void Scheduler::retire(Sequence& s) {
  release_pages(s);
  s.scheduled = s.computed = s.prefill_end = s.named = 0;
  s.tokens.resize(static_cast<std::size_t>(s.prompt));
  s.keys.resize(std::min<std::size_t>(s.keys.size(), s.prompt / plan_.page_size));
}

// The first one has computed what all live texts begin with.
void Scheduler::meet(Beams& b, StepRecord& record) {
  Sequence& first = b.first();
  b.meet_at = 0;
  for (Sequence* s : b.all) {
    if (!b.is_live(*s)) continue;
    if (s != &first) {
      for (int g = 0; g < cache_.groups(); ++g) s->tables[g].share(cache_.pool(g), first.tables[g]);
      tell_held(PageOp::kShare, *s);
      s->account.pages = std::max(s->account.pages, s->pages_held());
      s->scheduled = s->computed = first.computed;
      s->named = std::min(first.named, static_cast<int>(s->keys.size()));
    }
    s->resting = false;
    s->prefill_end = static_cast<int>(s->tokens.size());
    ledger_.recomputes(*s, s->prefill_end - s->computed);
    record.beams.push_back({.sequence = s->id,
                            .from = s->id,
                            .computed = s->computed,
                            .prefill_end = s->prefill_end,
                            .output = s->account.usage.completion_tokens});
  }
}

// Before they lose their seats: what they will compute first when they have them again.
void Scheduler::part(Beams& b) {
  b.meet_at = 0;
  for (Sequence* s : b.all) {
    s->ranked = false;
    s->candidates.clear();
    s->resting = s != &b.first();
    if (s->resting && b.is_live(*s)) b.meet_at = b.shared();
  }
}

// What `output` has beyond what its reader was told.
void Scheduler::tell_tokens(Sequence& s, std::span<const std::int32_t> output,
                            Clock::time_point now, bool all) {
  for (auto i = static_cast<std::size_t>(s.account.usage.completion_tokens); i < output.size();
       ++i) {
    if (s.stream->end_asked() != TokenStream::End::kNone || (!all && s.stream->held())) return;
    ledger_.drew(s, now);
    ledger_.appended(s);
    s.stream->push({.token = output[i], .at_ns = process_ns(now)}, nullptr);
  }
}

// Choice i is the i-th best text. `reason`: of all of them; none: each has its own.
void Scheduler::answer(Beams& b, Clock::time_point now, std::optional<FinishReason> reason) {
  const auto best = b.search.best();
  if (best.empty() && !reason)
    return end_beams(b, FinishReason::kError, logits_status_text(LogitsStatus::kBarred));
  try {
    for (std::size_t i = 0; i < best.size(); ++i) {
      const BeamSearch::Finished& f = *best[i];
      Sequence& s = *b.all[i];
      tell_tokens(s, std::span(f.tokens).first(f.tokens.size() - (f.end_token >= 0)), now, true);
      s.score = f.score;
    }
  } catch (const std::bad_alloc&) {
    return end_beams(b, FinishReason::kError, kOutOfMemory);
  }
  // The first one last: those that wait in the queue are its own.
  Sequence& first = b.first();
  for (std::size_t i = b.all.size(); i-- > 0;) {
    if (i == 0) first.forks.clear();
    const BeamSearch::Finished* f = i < best.size() ? best[i] : nullptr;
    const auto asked = b.all[i]->stream->end_asked();
    const FinishReason own = asked == TokenStream::End::kCancel ? FinishReason::kCancelled
                             : asked == TokenStream::End::kStop ? FinishReason::kStop
                             : f == nullptr || f->ended         ? FinishReason::kStop
                                                                : FinishReason::kLength;
    finish(*b.all[i], reason.value_or(own), {}, f != nullptr ? f->end_token : -1);
  }
}

void Scheduler::end_beams(Beams& b, FinishReason reason, std::string_view error) noexcept {
  Sequence& first = b.first();
  for (std::size_t i = b.all.size(); i-- > 1;)
    if (!b.all[i]->finished) finish(*b.all[i], reason, error);
  first.forks.clear();
  finish(first, reason, error);
}

void Scheduler::end(Sequence& s, FinishReason reason, std::string_view error) noexcept {
  if (s.beams)
    end_beams(*s.beams, reason, error);
  else
    finish(s, reason, error);
}

}  // namespace vitrine
