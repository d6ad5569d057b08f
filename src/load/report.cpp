#include "load/report.h"

#include <algorithm>
#include <cmath>

namespace vitrine::load {
namespace {

// Three significant digits, at most two after the point.
std::string number(double x) {
  double size = std::abs(x);
  if (size == std::floor(size) && size < 1e15) return fmt::format("{:.0f}", x);
  return fmt::format("{:.{}f}", x, size >= 100 ? 1 : size >= 1 ? 2 : 3);
}

std::string spread_row(const char* name, const Spread& s) {
  return fmt::format("{:<18}{:>12}{:>12}{:>12}{:>12}\n", name, number(s.mean), number(s.p50),
                     number(s.p95), number(s.p99));
}

std::string length_text(const LengthSpec& spec) {
  if (spec.cv == 0) return fmt::format("{} tokens", number(spec.mean));
  return fmt::format("{} tokens (cv {}, at most {})", number(spec.mean), number(spec.cv),
                     spec.limit());
}

// 1 for two zeros; undefined when only the divisor is 0.
std::string ratio_text(double a, double b) {
  if (b == 0) return a == 0 ? "" : "-";
  return fmt::format("{:.2f}", a / b);
}

json::object to_json(const std::vector<Metric>& metrics) {
  json::object out;
  for (const Metric& m : metrics) out[m.name] = m.value;
  return out;
}

}  // namespace

std::string describe(const LoadSpec& spec, const Slo& slo) {
  std::string out = spec.rate > 0 ? fmt::format("open loop, {} requests/s", number(spec.rate))
                                  : fmt::format("closed loop of {}", spec.concurrency);
  if (spec.requests > 0) out += fmt::format(", {} requests", spec.requests);
  if (spec.duration_s > 0) out += fmt::format(", {} s", number(spec.duration_s));
  if (spec.warmup > 0) out += fmt::format(" after {} to warm up", spec.warmup);
  out += fmt::format("\nprompt {}, output {}", length_text(spec.prompt), length_text(spec.output));
  if (spec.shared_prefix > 0)
    out += fmt::format("\n{} % of each prompt is common to all", number(100 * spec.shared_prefix));
  out += fmt::format("\nseed {}", spec.seed);
  if (slo.ttft_ms) out += fmt::format(", goodput: TTFT within {} ms", number(*slo.ttft_ms));
  if (slo.tpot_ms)
    out += fmt::format("{} TPOT within {} ms",
                       slo.ttft_ms ? " and" : ", goodput:", number(*slo.tpot_ms));
  return out + "\n";
}

std::string table(const Summary& s) {
  std::string out;
  for (const auto& [name, count] : s.outcomes) out += fmt::format("{:<18}{:>12}\n", name, count);
  auto row = [&](const char* name, const std::string& value, const std::string& note = "") {
    out += fmt::format("{:<18}{:>12}{}{}\n", name, value, note.empty() ? "" : "  ", note);
  };
  row("wall s", number(s.wall_s));
  row("requests/s", number(s.requests_s));
  row("goodput/s", number(s.goodput_s),
      fmt::format("{:.1f} % of the requests", 100 * s.goodput_share));
  row("output tokens", fmt::format("{}", s.output_tokens));
  row("output tok/s", number(s.output_tok_s));
  if (s.prompt_tokens > 0)
    row("prompt tokens", fmt::format("{}", s.prompt_tokens),
        fmt::format("{:.1f} % from the cache",
                    100 * double(s.cached_tokens) / double(s.prompt_tokens)));
  out += fmt::format("\n{:<18}{:>12}{:>12}{:>12}{:>12}\n", "ms", "mean", "p50", "p95", "p99");
  out += spread_row("TTFT", s.ttft_ms) + spread_row("TPOT", s.tpot_ms) +
         spread_row("inter-token", s.itl_ms) + spread_row("end to end", s.e2e_ms);
  out += fmt::format("\nthe client: {:.1f} % of a core, 99 % sent within {} ms of their time\n",
                     100 * s.client_cpu, number(s.late_ms_p99));
  if (s.short_answers > 0)
    out += fmt::format("{} answers had fewer tokens than were asked for\n", s.short_answers);
  if (!s.first_error.empty()) out += fmt::format("first error: {}\n", s.first_error);
  return out;
}

std::string comparison_table(const std::vector<Column>& columns) {
  std::vector<std::vector<Metric>> metrics;
  for (const Column& column : columns) metrics.push_back(median_metrics(column.runs));
  std::size_t width = 12;
  for (const Column& column : columns) width = std::max(width, column.name.size() + 4);
  std::string out = fmt::format("{:<16}", "");
  for (const Column& column : columns) out += fmt::format("{:>{}}", column.name, width);
  for (std::size_t c = 1; c < columns.size(); ++c)
    out += fmt::format("{:>{}}", columns.size() == 2 ? "ratio" : "/ " + columns[c].name, width);
  out += "\n";
  for (std::size_t i = 0; i < metrics[0].size(); ++i) {
    out += fmt::format("{:<16}", metrics[0][i].name);
    for (const auto& column : metrics) out += fmt::format("{:>{}}", number(column[i].value), width);
    for (std::size_t c = 1; c < metrics.size(); ++c)
      out += fmt::format("{:>{}}", ratio_text(metrics[0][i].value, metrics[c][i].value), width);
    out += "\n";
  }
  for (const Column& column : columns)
    for (const Summary& run : column.runs)
      if (!run.first_error.empty())
        out += fmt::format("{}: first error: {}\n", column.name, run.first_error);
  return out;
}

json::object comparison_json(const std::vector<Column>& columns) {
  json::array policies;
  json::object ratios;
  std::vector<Metric> base = median_metrics(columns.at(0).runs);
  for (const Column& column : columns) {
    std::vector<Metric> medians = median_metrics(column.runs);
    json::array runs;
    for (const Summary& run : column.runs) runs.push_back(to_json(run));
    policies.push_back(
        json::object{{"name", column.name}, {"median", to_json(medians)}, {"runs", runs}});
    if (&column == &columns[0]) continue;
    json::object ratio;
    for (std::size_t i = 0; i < medians.size(); ++i)
      if (medians[i].value != 0) ratio[medians[i].name] = base[i].value / medians[i].value;
    ratios[column.name] = ratio;
  }
  return {{"policies", policies}, {"ratio_of_first_to", ratios}};
}

}  // namespace vitrine::load
