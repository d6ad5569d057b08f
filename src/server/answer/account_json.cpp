#include "server/answer/account_json.h"

#include <algorithm>
#include <utility>

namespace vitrine {
namespace {

json::object cache_json(const CacheAccount& c) {
  json::object out{{"cached", c.cached},
                   {"possible", c.possible},
                   {"miss", cache_miss_name(c.miss)},
                   {"position", c.position},
                   {"text", c.text()}};
  if (c.miss == CacheMiss::kDiffers) out["here"] = c.here, out["there"] = c.there;
  return out;
}

// How full the engine was is not for everybody.
json::object queue_json(const QueueAccount& q, bool all) {
  json::object out{{"reason", wait_name(q.reason)}, {"first_ms", q.first_ms}};
  if (all && q.reason == Wait::kPages) out["needed"] = q.needed, out["available"] = q.available;
  return out;
}

double ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace

json::object stamps_json(const Stamps& t) {
  return {
      {"received", t.received},       {"body", t.body},           {"taken", t.taken},
      {"parsed", t.parsed},           {"templated", t.templated}, {"tokenized", t.tokenized},
      {"compiled", t.compiled},       {"submitted", t.submitted}, {"admitted", t.admitted},
      {"first_token", t.first_token}, {"ended", t.ended},         {"first_write", t.first_write},
      {"last_write", t.last_write}};
}

json::object account_json(const Account& a, bool all) {
  const Timings& t = a.timings;
  json::object out{{"label", a.label},
                   {"tenant", a.tenant},
                   {"choice", a.choice},
                   {"priority", a.priority},
                   {"submitted_unix_ms", a.submitted_unix_ms},
                   {"prompt_tokens", a.usage.prompt_tokens},
                   {"completion_tokens", a.usage.completion_tokens},
                   {"cached_tokens", a.usage.cached_tokens},
                   {"queue_ms", t.queue_ms},
                   {"ttft_ms", t.ttft_ms},
                   {"prefill_ms", t.prefill_ms},
                   {"decode_ms", t.decode_ms},
                   {"total_ms", t.total_ms},
                   {"prefill_steps", t.prefill_steps},
                   {"decode_steps", t.decode_steps},
                   {"prefill_tok_s", t.prefill_tok_s},
                   {"decode_tok_s", t.decode_tok_s},
                   {"steps", a.steps},
                   {"pages", a.pages},
                   {"preemptions", a.preemptions},
                   {"drafted_tokens", a.drafted},
                   {"accepted_tokens", a.accepted},
                   {"drafts", a.drafts},
                   {"draft_acceptance_rate", a.drafted > 0 ? 1.0 * a.accepted / a.drafted : 0},
                   {"mean_acceptance_length", a.drafts > 0 ? 1 + 1.0 * a.accepted / a.drafts : 1},
                   {"recomputed_tokens", a.recomputed_tokens},
                   {"flops", a.flops},
                   {"kv_read_bytes", a.kv_read_bytes},
                   {"kv_write_bytes", a.kv_write_bytes},
                   {"cache", cache_json(a.cache)},
                   {"queue", queue_json(a.queue, all)},
                   {"stamps", stamps_json(a.stamps)},
                   {"bytes_out", a.bytes_out}};
  if (all) {
    out["id"] = a.id;
    if (a.parent != 0) out["parent"] = a.parent;
    if (a.beam_of != 0) out["beam_of"] = a.beam_of;
    out["batch_mean"] = a.batch_mean;
    out["batch_max"] = a.batch_max;
    out["weight_bytes"] = a.weight_bytes;
    out["shares"] = json::object{{"input_ns", a.input_ns},
                                 {"cached_ns", a.cached_ns},
                                 {"output_ns", a.output_ns},
                                 {"wasted_ns", a.wasted_ns}};
  }
  if (!a.error.empty()) out["error"] = a.error;
  return out;
}

json::object token_latency_json(std::span<const std::int64_t> times_ns) {
  if (times_ns.size() < 2) return {};
  std::vector<double> gaps;
  for (std::size_t i = 1; i < times_ns.size(); ++i)
    gaps.push_back(ms(times_ns[i] - times_ns[i - 1]));
  json::array list(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(
                                                    std::min(gaps.size(), kMaxListedLatencies)));
  double sum = 0;
  for (double gap : gaps) sum += gap;
  std::sort(gaps.begin(), gaps.end());
  // The smallest value that at least this share does not exceed.
  auto quantile = [&](double share) {
    auto rank = static_cast<std::size_t>(share * static_cast<double>(gaps.size()) + 0.999999);
    return gaps[std::clamp<std::size_t>(rank, 1, gaps.size()) - 1];
  };
  return {{"mean", sum / static_cast<double>(gaps.size())},
          {"p50", quantile(0.5)},
          {"p95", quantile(0.95)},
          {"max", gaps.back()},
          {"list", std::move(list)}};
}

json::object pool_json(const PoolStats& p) {
  return {{"window", p.window}, {"page_size", p.page_size}, {"total", p.total},
          {"free", p.free},     {"cached", p.cached},       {"used", p.used},
          {"shared", p.shared}, {"tokens", p.tokens},       {"page_bytes", p.page_bytes},
          {"waste", p.waste()}};
}

json::object sequence_json(const SequenceStats& s, bool all) {
  json::object out = account_json(s.account, all);
  out["state"] = sequence_state_name(s.state);
  out["age_ms"] = s.age_ms;
  out["computed"] = s.computed;
  out["length"] = s.length;
  return out;
}

json::value blocked_json(const Blocked& b) {
  if (b.reason == Wait::kNone) return nullptr;
  json::object out{{"reason", wait_name(b.reason)}, {"id", b.sequence}};
  if (b.reason == Wait::kPages) out["needed"] = b.needed, out["available"] = b.available;
  return out;
}

json::object sources_json(const StepRecord& r) {
  json::object out;
  for (const SourceShare& share : r.by_source)
    out[guess_source_name(share.source)] = json::object{{"drafts", share.drafts},
                                                        {"drafted", share.drafted},
                                                        {"accepted", share.accepted},
                                                        {"draft_ns", share.draft_ns},
                                                        {"lost_ns", share.lost_ns}};
  return out;
}

json::object whole_step_json(const StepRecord& r) {
  json::array entries;
  // The columns of EntryRow in trace/events.def, so that readers of the stream read these too.
  for (const StepEntry& e : r.entries)
    entries.push_back(json::array{e.sequence, e.slot,
                                  e.phase == Phase::kPrefill ? "prefill" : "decode", e.first,
                                  e.tokens, e.sampled, e.flops, e.kv_read_bytes, e.kv_write_bytes,
                                  e.share_ns, e.again, e.kept, e.drawn});
  json::array beams;
  for (const BeamChange& b : r.beams)
    beams.push_back(json::array{b.sequence, b.from, b.computed, b.prefill_end, b.output, b.sum});
  return {
      {"step", r.step},
      {"start_ns", r.start_ns},
      {"wall_ns", r.wall_ns},
      {"plan_ns", r.plan_ns},
      {"forward_ns", r.forward_ns},
      {"sample_ns", r.sample_ns},
      {"commit_ns", r.commit_ns},
      {"wait_ns", r.wait_ns},
      {"device_ns", r.device_ns},
      {"device_idle_ns", r.device_idle_ns},
      {"cache_ns", r.cache_ns},
      {"padding_share_ns", r.padding_share_ns},
      {"flops_per_byte", r.flops_per_byte},
      {"rows",
       {{"prefill", r.prefill_tokens},
        {"decode", r.decode_tokens},
        {"padding", r.padding_rows},
        {"head", r.head_rows},
        {"beams", r.beam_rows}}},
      {"flops", r.flops},
      {"weight_bytes", r.weight_bytes},
      {"kv_read_bytes", r.kv_read_bytes},
      {"kv_write_bytes", r.kv_write_bytes},
      {"running", r.running},
      {"waiting", r.waiting},
      {"preempted", r.preempted},
      {"spec",
       {{"drafted", r.drafted},
        {"accepted", r.accepted},
        {"draft_ns", r.draft_ns},
        {"lost_ns", r.spec_lost_ns},
        {"by_source", sources_json(r)}}},
      {"pages", {{"used", r.pages_used}, {"cached", r.pages_cached}, {"copied", r.pages_copied}}},
      {"blocked", blocked_json(r.blocked)},
      {"beams", std::move(beams)},
      {"entries", std::move(entries)}};
}

namespace {

// The others in it: [id, phase, rows], the most rows first.
json::array company_json(const OwnStep& step, std::uint64_t sequence) {
  json::array out;
  for (const StepEntry& e : step.largest)
    if (e.sequence != sequence && out.size() < kMostCompany)
      out.push_back(
          json::array{e.sequence, e.phase == Phase::kPrefill ? "prefill" : "decode", e.tokens});
  return out;
}

}  // namespace

json::object step_json(const OwnStep& step, const StepEntry& e, bool all) {
  const StepRecord& r = step.record;
  json::object out{{"start_ns", r.start_ns},
                   {"end_ns", r.wall_from_ns + r.wall_ns},
                   {"wall_ns", r.wall_ns},
                   {"plan_ms", ms(r.plan_ns)},
                   {"forward_ms", ms(r.forward_ns)},
                   {"sample_ms", ms(r.sample_ns)},
                   {"commit_ms", ms(r.commit_ns)},
                   {"phase", e.phase == Phase::kPrefill ? "prefill" : "decode"},
                   {"first", e.first},
                   {"tokens", e.tokens},
                   {"sampled", e.sampled},
                   {"flops", e.flops},
                   {"bytes", e.kv_read_bytes + e.kv_write_bytes}};
  if (!all) return out;
  out["step"] = r.step;
  out["prefill_tokens"] = r.prefill_tokens;
  out["decode_tokens"] = r.decode_tokens;
  out["sequences"] = step.sequences;
  out["company"] = company_json(step, e.sequence);
  out["share_ns"] = e.share_ns;
  if (const int rows = r.prefill_tokens + r.decode_tokens; rows > 0)
    out["weight_bytes"] = static_cast<double>(r.weight_bytes) * e.tokens / rows;
  return out;
}

}  // namespace vitrine
