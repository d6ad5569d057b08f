#include "engine/scheduler.h"

#include <algorithm>

namespace vitrine {

Scheduler::Scheduler(const MemoryPlan& plan, int step_tokens, std::vector<std::int32_t> eos_ids)
    : plan_(plan), step_tokens_(step_tokens), eos_ids_(std::move(eos_ids)) {
  for (const CacheGroup& g : plan.groups) {
    pools_.emplace_back(g.pages);
    unreserved_.push_back(g.pages);
  }
  for (int slot = plan.sequences - 1; slot >= 0; --slot) free_slots_.push_back(slot);
  running_.reserve(plan.sequences);
}

void Scheduler::add(std::unique_ptr<Sequence> sequence) { waiting_.push_back(std::move(sequence)); }

void Scheduler::plan(Batch& batch) {
  batch.clear();
  drop_cancelled();
  admit();
  for (auto& s : running_)
    if (s->scheduled >= s->prompt && batch.tokens < step_tokens_) schedule(batch, *s, 1);
  for (auto& s : running_)
    if (s->scheduled < s->prompt && batch.tokens < step_tokens_)
      schedule(batch, *s, step_tokens_ - batch.tokens);
}

void Scheduler::drop_cancelled() {
  for (auto& s : running_)
    if (!s->finished && s->stream->cancelled()) finish(*s, FinishReason::kCancelled);
  reap();
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if ((*it)->stream->cancelled()) {
      finish(**it, FinishReason::kCancelled);
      it = waiting_.erase(it);
    } else {
      ++it;
    }
  }
}

// First come, first served: a large sequence is not overtaken for ever by small ones.
void Scheduler::admit() {
  while (!waiting_.empty() && !free_slots_.empty()) {
    Sequence& s = *waiting_.front();
    int length = s.prompt + s.max_output;
    std::vector<int> wanted;
    bool fits = true;
    for (int g = 0; g < groups(); ++g) {
      int pages = (length + plan_.page_size - 1) / plan_.page_size;
      wanted.push_back(std::min(pages, plan_.groups[g].pages_per_sequence));
      fits = fits && wanted[g] <= unreserved_[g];
    }
    if (!fits) return;
    for (int g = 0; g < groups(); ++g) {
      unreserved_[g] -= wanted[g];
      s.tables.emplace_back(plan_.page_size, plan_.groups[g].spec.window, length);
    }
    s.reserved = std::move(wanted);
    s.slot = free_slots_.back();
    free_slots_.pop_back();
    s.timings.queue_ms =
        std::chrono::duration<double, std::milli>(Clock::now() - s.submitted).count();
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

bool Scheduler::schedule(Batch& batch, Sequence& s, int budget) {
  if (s.finished) return false;
  bool prefill = s.scheduled < s.prompt;
  if (!prefill && s.planned_output() >= s.max_output) return false;
  int count = prefill ? std::min(budget, s.prompt - s.scheduled) : 1;
  int end = s.scheduled + count;
  for (int g = 0; g < groups(); ++g) s.tables[g].grow(pools_[g], end);
  bool last = end >= s.prompt && s.max_output > 0;
  batch.entries.push_back({.sequence = &s, .first = s.scheduled, .count = count, .sample = last});
  batch.tokens += count;
  s.scheduled = end;
  ++s.in_flight;
  return true;
}

void Scheduler::commit(const Batch& batch) {
  for (const BatchEntry& entry : batch.entries) {
    Sequence& s = *entry.sequence;
    --s.in_flight;
    if (s.finished) continue;  // it ended in an earlier step: this one's result is dropped
    s.computed = entry.first + entry.count;
    for (int g = 0; g < groups(); ++g) s.tables[g].release_behind_window(pools_[g], s.computed);
    if (entry.sample)
      append(s, entry);
    else if (s.computed >= s.prompt && s.max_output == 0)
      finish(s, FinishReason::kLength);
  }
  reap();
}

void Scheduler::append(Sequence& s, const BatchEntry& entry) {
  if (entry.status != LogitsStatus::kOk)
    return finish(s, FinishReason::kError,
                  fmt::format("position {}: {}", s.computed, logits_status_text(entry.status)));
  if (s.usage.completion_tokens == 0)
    s.timings.ttft_ms =
        std::chrono::duration<double, std::milli>(Clock::now() - s.submitted).count();
  bool eos = std::find(eos_ids_.begin(), eos_ids_.end(), entry.sampled) != eos_ids_.end();
  if (eos && !s.request.ignore_eos) return finish(s, FinishReason::kStop);
  s.tokens.push_back(entry.sampled);
  ++s.usage.completion_tokens;
  s.stream->push({entry.sampled, entry.logprob});
  if (s.usage.completion_tokens >= s.max_output) finish(s, FinishReason::kLength);
}

void Scheduler::account(const Batch& batch, std::int64_t step_ns) {
  for (const BatchEntry& entry : batch.entries) {
    Timings& t = entry.sequence->timings;
    bool prefill = entry.first < entry.sequence->prompt;
    (prefill ? t.prefill_ms : t.decode_ms) += static_cast<double>(step_ns) * 1e-6;
    ++(prefill ? t.prefill_steps : t.decode_steps);
  }
}

// The stream is closed at once; pages and slot go back when no planned step refers to them.
void Scheduler::finish(Sequence& s, FinishReason reason, const std::string& error) {
  s.finished = true;
  Timings& t = s.timings;
  if (t.prefill_ms > 0) t.prefill_tok_s = 1e3 * std::min(s.computed, s.prompt) / t.prefill_ms;
  if (t.decode_ms > 0) t.decode_tok_s = 1e3 * t.decode_steps / t.decode_ms;
  s.stream->close({reason, error, s.usage, t, s.seed});
}

void Scheduler::reap() {
  std::erase_if(running_, [&](const std::unique_ptr<Sequence>& s) {
    if (!s->finished || s->in_flight > 0) return false;
    for (int g = 0; g < groups(); ++g) {
      s->tables[g].release_all(pools_[g]);
      unreserved_[g] += s->reserved[g];
    }
    free_slots_.push_back(s->slot);
    return true;
  });
}

void Scheduler::abort_all(FinishReason reason, const std::string& error) {
  for (auto& s : running_) {
    s->in_flight = 0;
    if (!s->finished) finish(*s, reason, error);
  }
  reap();
  for (auto& s : waiting_) finish(*s, reason, error);
  waiting_.clear();
}

void Scheduler::check_integrity() const {
  for (int g = 0; g < groups(); ++g) {
    int held = 0, reserved = 0;
    for (const auto& s : running_) {
      held += s->tables[g].held();
      reserved += s->reserved[g];
      VT_CHECK(s->tables[g].held() <= s->reserved[g], "sequence {} holds {} pages of {} reserved",
               s->id, s->tables[g].held(), s->reserved[g]);
    }
    VT_CHECK(held == pools_[g].used(), "group {}: {} pages in tables, {} in use", g, held,
             pools_[g].used());
    VT_CHECK(reserved + unreserved_[g] == pools_[g].total(), "group {}: {} + {} of {} pages", g,
             reserved, unreserved_[g], pools_[g].total());
  }
  VT_CHECK(running_.size() + free_slots_.size() == static_cast<std::size_t>(plan_.sequences));
}

}  // namespace vitrine
