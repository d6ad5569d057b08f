// Figures over the traces of a load.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "load/trace.h"

namespace vitrine::load {

// The q-th quantile, 0 to 1, by linear interpolation between the sorted values; 0 when empty.
double percentile(const std::vector<double>& sorted, double q);
double median(std::vector<double> values);

struct Spread {
  double mean = 0, p50 = 0, p95 = 0, p99 = 0;
};
Spread spread_of(std::vector<double> values);

// The limits within which a request counts as goodput.
struct Slo {
  std::optional<double> ttft_ms, tpot_ms;
};

struct Summary {
  int requests = 0;
  int ok = 0;
  int rejected = 0;                     // 429
  int failed = 0;                       // all others
  int short_answers = 0;                // ok, with fewer tokens than were asked for
  std::map<std::string, int> outcomes;  // "ok", "rejected (429)", "http_error (400)", ...
  std::string first_error;

  double wall_s = 0;
  // Of requests that were ok:
  std::int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  double requests_s = 0;
  double output_tok_s = 0;
  double goodput_s = 0;      // requests a second that kept the Slo
  double goodput_share = 0;  // of all requests
  Spread ttft_ms;            // in open loop from the scheduled arrival
  Spread tpot_ms;            // time per output token after the first
  Spread itl_ms;             // between two frames of a stream
  Spread e2e_ms;             // in open loop from the scheduled arrival

  // Whether the client itself was a bottleneck:
  double client_cpu = 0;   // share of one core
  double late_ms_p99 = 0;  // sent after the scheduled time
};
Summary summarize(const LoadTrace& trace, const Slo& slo);

json::object to_json(const Summary& summary);

// The figures that can be compared between runs, in the order of the table.
struct Metric {
  std::string name;
  double value = 0;
};
std::vector<Metric> metrics_of(const Summary& summary);
// The median of each metric over several runs of the same load; at least one.
std::vector<Metric> median_metrics(const std::vector<Summary>& runs);

}  // namespace vitrine::load
