#include "load/stats.h"

#include <algorithm>
#include <cmath>

namespace vitrine::load {
namespace {

double seconds_to_ms(double s) { return 1000 * s; }

std::string outcome_key(const RequestTrace& r) {
  std::string name = outcome_name(r.outcome);
  bool by_status = r.outcome == Outcome::kRejected || r.outcome == Outcome::kHttpError;
  return by_status ? fmt::format("{} ({})", name, r.status) : name;
}

double ttft_ms(const RequestTrace& r) { return seconds_to_ms(r.first - r.scheduled); }

// One token has no time per further token.
std::optional<double> tpot_ms(const RequestTrace& r) {
  if (r.output_tokens < 2 || r.first < 0) return std::nullopt;
  return seconds_to_ms(r.last - r.first) / (r.output_tokens - 1);
}

bool keeps(const RequestTrace& r, const Slo& slo) {
  if (slo.ttft_ms && (r.first < 0 || ttft_ms(r) > *slo.ttft_ms)) return false;
  std::optional<double> tpot = tpot_ms(r);
  return !slo.tpot_ms || !tpot || *tpot <= *slo.tpot_ms;
}

json::object to_json(const Spread& s) {
  return {{"mean", s.mean}, {"p50", s.p50}, {"p95", s.p95}, {"p99", s.p99}};
}

void add_spread(std::vector<Metric>& out, const std::string& name, const Spread& s) {
  out.push_back({name + " mean", s.mean});
  out.push_back({name + " p50", s.p50});
  out.push_back({name + " p95", s.p95});
  out.push_back({name + " p99", s.p99});
}

}  // namespace

double percentile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return 0;
  double at = q * static_cast<double>(sorted.size() - 1);
  auto below = static_cast<std::size_t>(at);
  std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return percentile(values, 0.5);
}

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (double v : values) sum += v;
  return {sum / static_cast<double>(values.size()), percentile(values, 0.5),
          percentile(values, 0.95), percentile(values, 0.99)};
}

Summary summarize(const LoadTrace& trace, const Slo& slo) {
  Summary out;
  std::vector<double> ttft, tpot, itl, e2e, late;
  int good = 0;
  for (const RequestTrace& r : trace.requests) {
    ++out.requests;
    ++out.outcomes[outcome_key(r)];
    if (out.first_error.empty()) out.first_error = r.error;
    if (r.outcome != Outcome::kConnect) late.push_back(seconds_to_ms(r.sent - r.scheduled));
    if (r.outcome != Outcome::kOk) {
      ++(r.outcome == Outcome::kRejected ? out.rejected : out.failed);
      continue;
    }
    ++out.ok;
    out.short_answers += r.output_tokens < r.asked_tokens;
    out.prompt_tokens += r.prompt_tokens;
    out.cached_tokens += r.cached_tokens;
    out.output_tokens += r.output_tokens;
    good += keeps(r, slo);
    if (r.first >= 0) ttft.push_back(ttft_ms(r));
    if (std::optional<double> t = tpot_ms(r)) tpot.push_back(*t);
    for (float gap : r.gaps) itl.push_back(seconds_to_ms(gap));
    e2e.push_back(seconds_to_ms(r.end - r.scheduled));
  }
  out.wall_s = trace.wall_s;
  if (trace.wall_s > 0) {
    out.requests_s = out.ok / trace.wall_s;
    out.output_tok_s = static_cast<double>(out.output_tokens) / trace.wall_s;
    out.goodput_s = good / trace.wall_s;
    out.client_cpu = trace.cpu_s / trace.wall_s;
  }
  if (out.requests > 0) out.goodput_share = static_cast<double>(good) / out.requests;
  out.ttft_ms = spread_of(std::move(ttft));
  out.tpot_ms = spread_of(std::move(tpot));
  out.itl_ms = spread_of(std::move(itl));
  out.e2e_ms = spread_of(std::move(e2e));
  out.late_ms_p99 = spread_of(std::move(late)).p99;
  return out;
}

json::object to_json(const Summary& s) {
  json::object outcomes;
  for (const auto& [name, count] : s.outcomes) outcomes[name] = count;
  return {{"requests", s.requests},
          {"ok", s.ok},
          {"rejected", s.rejected},
          {"failed", s.failed},
          {"short_answers", s.short_answers},
          {"outcomes", outcomes},
          {"first_error", s.first_error.empty() ? json::value() : json::value(s.first_error)},
          {"wall_s", s.wall_s},
          {"prompt_tokens", s.prompt_tokens},
          {"cached_tokens", s.cached_tokens},
          {"output_tokens", s.output_tokens},
          {"requests_s", s.requests_s},
          {"output_tok_s", s.output_tok_s},
          {"goodput_s", s.goodput_s},
          {"goodput_share", s.goodput_share},
          {"ttft_ms", to_json(s.ttft_ms)},
          {"tpot_ms", to_json(s.tpot_ms)},
          {"itl_ms", to_json(s.itl_ms)},
          {"e2e_ms", to_json(s.e2e_ms)},
          {"client", {{"cpu", s.client_cpu}, {"late_ms_p99", s.late_ms_p99}}}};
}

std::vector<Metric> metrics_of(const Summary& s) {
  std::vector<Metric> out{{"requests ok", double(s.ok)},
                          {"rejected (429)", double(s.rejected)},
                          {"failed", double(s.failed)},
                          {"wall s", s.wall_s},
                          {"requests/s", s.requests_s},
                          {"goodput/s", s.goodput_s},
                          {"output tokens", double(s.output_tokens)},
                          {"output tok/s", s.output_tok_s}};
  add_spread(out, "TTFT ms", s.ttft_ms);
  add_spread(out, "TPOT ms", s.tpot_ms);
  add_spread(out, "ITL ms", s.itl_ms);
  add_spread(out, "E2E ms", s.e2e_ms);
  return out;
}

std::vector<Metric> median_metrics(const std::vector<Summary>& runs) {
  std::vector<std::vector<Metric>> all;
  for (const Summary& run : runs) all.push_back(metrics_of(run));
  std::vector<Metric> out = all.at(0);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::vector<double> values;
    for (const auto& metrics : all) values.push_back(metrics[i].value);
    out[i].value = median(std::move(values));
  }
  return out;
}

}  // namespace vitrine::load
