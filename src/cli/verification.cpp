#include "cli/verification.h"

#include "cli/output.h"

namespace vitrine {
namespace {

using verify::Difference;
using verify::Report;
using verify::Row;

std::string command_of(const Difference& d, const std::string& replay) {
  return fmt::format("{} --only {} --case {}", replay, d.condition, d.number);
}

std::string outcome(const Row& row) {
  if (!row.missing.empty()) return "not here: " + row.missing;
  if (!row.happened) return "NOT ENOUGH: " + row.seen;
  return row.seen;
}

std::string verdict(const Report& report) {
  if (report.ok()) return "All as promised.";
  int differences = 0, idle = 0;
  for (const Row& row : report.rows) differences += row.differences, idle += !row.happened;
  std::string out = "NOT as promised:";
  if (differences > 0) out += fmt::format(" {} answers differ.", differences);
  if (idle > 0)
    out += fmt::format(" {} conditions did not come about; more --cases may help.", idle);
  return out;
}

}  // namespace

std::string promise_of(const Report& report) {
  if (report.exact) return "the same tokens and the same bits, whatever happens around a request";
  return fmt::format(
      "the same distributions up to rounding (within {}); --deterministic promises the same bits",
      verify::kMostDistance);
}

json::object report_json(const Report& report, const std::string& replay) {
  json::array rows, differences;
  for (const Row& r : report.rows)
    rows.push_back(json::object{{"what", r.condition},
                                {"help", r.help},
                                {"cases", r.cases},
                                {"tokens", r.tokens},
                                {"same_tokens", r.same},
                                {"differences", r.differences},
                                {"tried", r.missing.empty()},
                                {"happened", r.missing.empty() && r.happened},
                                {"seen", outcome(r)}});
  for (const Difference& d : report.differences)
    differences.push_back(json::object{{"what", d.condition},
                                       {"case", d.number},
                                       {"choice", d.choice},
                                       {"request", d.what},
                                       {"text", d.text},
                                       {"replay", command_of(d, replay)}});
  return {{"ok", report.ok()},
          {"backend", report.backend},
          {"bits_promised", report.exact},
          {"promise", promise_of(report)},
          {"seed", report.seed},
          {"conditions", std::move(rows)},
          {"differences", std::move(differences)}};
}

std::string report_text(const Report& report, const std::string& replay) {
  std::string out = fmt::format("{}\npromised: {}\n\n", report.backend, promise_of(report));
  out += fmt::format("{:<10} {:>6} {:>9} {:>12}  {}\n", "what", "cases", "tokens", "differences",
                     "what happened");
  for (const Row& r : report.rows)
    out += fmt::format("{:<10} {:>6} {:>9} {:>12}  {}\n", r.condition, with_commas(r.cases),
                       with_commas(r.tokens), with_commas(r.differences), outcome(r));
  for (const Difference& d : report.differences)
    out += fmt::format("\n{}: case {} ({}), choice {}\n  {}\n  again: {}\n", d.condition, d.number,
                       d.what, d.choice, d.text, command_of(d, replay));
  return out + "\n" + verdict(report) + "\n";
}

int exit_code(const Report& report) { return report.ok() ? 0 : 1; }

}  // namespace vitrine
