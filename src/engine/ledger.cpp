#include "engine/ledger.h"

#include <algorithm>
#include <new>

#include "base/process_clock.h"

namespace vitrine {
namespace {

double ms_since(Clock::time_point start, Clock::time_point now) {
  return std::chrono::duration<double, std::milli>(now - start).count();
}

}  // namespace

Ledger::Ledger() {
  accounts_.reserve(kKeptAccounts);
  just_ended_.reserve(kKeptAccounts);
  ends_.reserve(64);
}

void Ledger::admitted(Sequence& s, Clock::time_point now) {
  if (s.preempted) return;
  s.account.stamps.admitted = process_ns(now);
  s.account.timings.queue_ms = ms_since(s.submitted, now);
  if (s.first_since) s.account.queue.first_ms = ms_since(*s.first_since, now);
}

void Ledger::looked_up(const Sequence& s, int found) {
  metrics_.prefix_queries += s.prefill_end;
  metrics_.prefix_hits += found;
}

void Ledger::recomputes(Sequence& s, int tokens) {
  s.account.recomputed_tokens += tokens;
  metrics_.recomputed_tokens += tokens;
}

void Ledger::preempted(Sequence& s) {
  ++s.account.preemptions;
  ++metrics_.preemptions;
  ++preempted_;
}

void Ledger::ran(const Batch& batch, const StepRecord& r) {
  double ns = static_cast<double>(r.plan_ns + r.forward_ns + r.sample_ns);
  int sequences = static_cast<int>(batch.entries.size());
  for (const BatchEntry& entry : batch.entries) {
    if (entry.sequence->finished) continue;  // its account is closed
    Account& a = entry.sequence->account;
    Timings& t = a.timings;
    a.life.turn(r.wall_from_ns, entry.prefill ? LifeKind::kPrefill : LifeKind::kDecode,
                entry.again > 0 ? LifeCause::kAgain : LifeCause::kNone);
    (entry.prefill ? t.prefill_ms : t.decode_ms) += ns * 1e-6;
    ++(entry.prefill ? t.prefill_steps : t.decode_steps);
    if (!entry.prefill) {
      t.decode_tokens += entry.sequence->beams ? entry.draws : entry.tokens;
      speculated(a, entry);
    }
    if (a.steps == 0) a.first_step = r.step;
    a.last_step = r.step;
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
    double rate = (ns - static_cast<double>(batch.draft_ns)) / batch.tokens;
    double& mean = prefill_ns_per_token_;
    mean = mean == 0 ? rate : 0.8 * mean + 0.2 * rate;
  }
}

void Ledger::speculated(Account& a, const BatchEntry& entry) {
  const int drafted = entry.draws - 1;
  if (drafted <= 0) return;
  a.drafted += drafted, ++a.drafts;
  if (entry.sequence->draft_source == GuessSource::kPrediction) a.predicted += drafted;
  ++metrics_.drafts, metrics_.drafted_tokens += static_cast<std::uint64_t>(drafted);
}

void Ledger::guessed(const StepRecord& r) {
  for (const SourceShare& from : r.by_source) {
    Metrics::Guesses& to = metrics_.by_source[static_cast<int>(from.source)];
    to.drafts += static_cast<std::uint64_t>(from.drafts);
    to.drafted += static_cast<std::uint64_t>(from.drafted);
    to.accepted += static_cast<std::uint64_t>(from.accepted);
    to.seconds += 1e-9 * static_cast<double>(from.draft_ns);
    to.lost_seconds += 1e-9 * static_cast<double>(from.lost_ns);
  }
}

void Ledger::charge(Sequence* s, const StepEntry& e) {
  Account* a = s != nullptr ? &s->account : nullptr;
  for (std::size_t i = 0; a == nullptr && i < just_ended_.size(); ++i)
    if (accounts_[just_ended_[i]].id == e.sequence) a = &accounts_[just_ended_[i]];
  if (a == nullptr) return;  // it ended before, and this step is dropped
  const std::int64_t wasted = e.tokens > 0 ? e.share_ns * e.again / e.tokens : 0;
  a->wasted_ns += wasted;
  (e.phase == Phase::kPrefill ? a->input_ns : a->output_ns) += e.share_ns - wasted;
}

void Ledger::settled() { just_ended_.clear(); }

void Ledger::drew(Sequence& s, Clock::time_point now) {
  if (s.account.usage.completion_tokens == 0) {
    s.account.timings.ttft_ms = ms_since(s.submitted, now);
    s.account.stamps.first_token = process_ns(now);
    metrics_.time_to_first_token.add(s.account.timings.ttft_ms * 1e-3);
  } else {
    metrics_.inter_token_latency.add(ms_since(s.last_token, now) * 1e-3);
  }
  s.last_token = now;
}

void Ledger::appended(Sequence& s, int guess) {
  ++s.account.usage.completion_tokens;
  ++metrics_.generation_tokens;
  if (guess < 0) return;
  ++s.account.accepted, ++metrics_.accepted_by_place[guess];
  if (s.draft_source == GuessSource::kPrediction) ++s.account.predicted_accepted;
}

Account Ledger::ended(Sequence& s, FinishReason reason, const std::string& error) noexcept {
  Clock::time_point now = Clock::now();
  Account& a = s.account;
  Timings& t = a.timings;
  t.total_ms = ms_since(s.submitted, now);
  a.stamps.ended = process_ns(now);
  if (s.in_flight > 0)  // in a step that is on its way
    a.life.turn(wall_from_, s.computed < s.prefill_end ? LifeKind::kPrefill : LifeKind::kDecode,
                s.computed < s.reached ? LifeCause::kAgain : LifeCause::kNone);
  a.life.end(a.stamps.ended);
  int computed = std::min(s.computed, a.usage.prompt_tokens) - a.usage.cached_tokens;
  if (t.prefill_ms > 0) t.prefill_tok_s = 1e3 * std::max(0, computed) / t.prefill_ms;
  if (t.decode_ms > 0) t.decode_tok_s = 1e3 * t.decode_tokens / t.decode_ms;
  a.reason = reason;
  measure(s);
  try {
    a.error = error;
    keep(a);
  } catch (const std::bad_alloc&) {  // it is missing in the list of the last ones
  }
  if (ends_.size() < ends_.capacity())
    ends_.push_back(now);
  else
    ends_[ended_ % ends_.size()] = now;
  ++ended_;
  return std::move(a);
}

void Ledger::keep(const Account& account) {
  Account copy = account;
  const std::size_t at =
      accounts_.size() < kKeptAccounts ? accounts_.size() : ended_ % kKeptAccounts;
  if (at == accounts_.size())
    accounts_.push_back(std::move(copy));
  else
    accounts_[at] = std::move(copy);
  if (just_ended_.size() < just_ended_.capacity()) just_ended_.push_back(at);
}

void Ledger::measure(const Sequence& s) {
  const Timings& t = s.account.timings;
  ++metrics_.finished[static_cast<int>(s.account.reason)];
  if (s.account.steps > 0) metrics_.prompt_tokens += s.account.usage.prompt_tokens;
  metrics_.cached_tokens += s.account.usage.cached_tokens;
  metrics_.queue_time.add(t.queue_ms * 1e-3);
  metrics_.prefill_time.add(t.prefill_ms * 1e-3);
  metrics_.decode_time.add(t.decode_ms * 1e-3);
  metrics_.e2e_latency.add(t.total_ms * 1e-3);
  metrics_.prompt_length.add(s.account.usage.prompt_tokens);
  metrics_.generation_length.add(s.account.usage.completion_tokens);
}

std::int64_t Ledger::take_prefix_ns() {
  metrics_.prefix_seconds += static_cast<double>(prefix_ns_) * 1e-9;
  return std::exchange(prefix_ns_, 0);
}

double Ledger::finish_rate(Clock::time_point now) const {
  if (ends_.empty()) return 0;
  Clock::time_point first = *std::min_element(ends_.begin(), ends_.end());
  double seconds = std::chrono::duration<double>(now - first).count();
  return static_cast<double>(ends_.size()) / std::max(seconds, 1e-3);
}

}  // namespace vitrine
