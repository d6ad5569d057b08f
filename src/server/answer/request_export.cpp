#include "server/answer/request_export.h"

#include <algorithm>

#include "server/answer/chrome_trace.h"

namespace vitrine {
namespace {

constexpr int kRequest = 1;  // pid

json::object part_args(const LifePart& part, const Names& names) {
  json::object out{{"start_ns", part.start}, {"ns", part.ns}};
  if (part.cause != LifeCause::kNone) out["reason"] = life_cause_name(part.cause);
  if (part.by != 0) out["by"] = names.text(part.by);
  if (part.sum_of > 0) out["sum_of"] = part.sum_of;
  return out;
}

// Its rows' work in a step, by their part of the step's time.
json::object rates(const StepRecord& r, const StepEntry& e) {
  const auto ns = static_cast<double>(e.share_ns);
  const int rows = r.prefill_tokens + r.decode_tokens;
  const double weights = rows > 0 ? static_cast<double>(r.weight_bytes) * e.tokens / rows : 0;
  return {{"GFLOP/s", e.flops / ns}, {"GB/s", (weights + e.kv_read_bytes + e.kv_write_bytes) / ns}};
}

// Those steps that are within a part: after the parts that are kept one by one, only sums are known.
void add_steps(ChromeTrace& out, const ExportedChoice& choice, std::uint64_t track, bool all) {
  const Account& a = choice.found->account;
  const std::string counter = fmt::format("choice {}", a.choice);
  std::int64_t end = 0;
  for (const FoundSteps::Row& row : choice.steps) {
    const StepRecord& r = row.step->record;
    const StepEntry& e = *row.entry;
    const LifeKind kind = e.phase == Phase::kPrefill ? LifeKind::kPrefill : LifeKind::kDecode;
    for (const LifePart& part : choice.found->life) {
      const std::int64_t from = std::max(part.start, r.wall_from_ns);
      const std::int64_t to = std::min(part.start + part.ns, r.wall_from_ns + r.wall_ns);
      if (part.kind != kind || part.sum_of > 0 || from >= to) continue;
      json::object args{
          {"start_ns", from}, {"ns", to - from}, {"rows", e.tokens}, {"first position", e.first}};
      if (all) {
        args["step"] = r.step, args["sequences"] = row.step->sequences;
        args["share_ns"] = e.share_ns;
      }
      out.slice(all ? fmt::format("step {}", r.step) : "step", kRequest, track, from, to - from,
                std::move(args));
      // Its part of a step would tell how many others there were.
      if (all && e.share_ns > 0) out.counter(counter, kRequest, from, rates(r, e));
      end = to;
    }
  }
  if (all && end > 0) out.counter(counter, kRequest, end, {{"GFLOP/s", 0}, {"GB/s", 0}});
}

}  // namespace

json::object request_perfetto(const std::vector<ExportedChoice>& choices, const Names& names) {
  std::int64_t zero = INT64_MAX;
  for (const ExportedChoice& choice : choices)
    if (!choice.found->life.empty()) zero = std::min(zero, choice.found->life.front().start);
  ChromeTrace out(zero);
  out.name("process_name", kRequest, 0, "request " + choices.front().found->account.label);
  for (const ExportedChoice& choice : choices) {
    const Account& a = choice.found->account;
    const auto track = static_cast<std::uint64_t>(a.choice) + 1;
    const bool all = names.sees_all();
    out.name("thread_name", kRequest, track, fmt::format("choice {}", a.choice));
    std::int64_t sum = 0;
    for (const LifePart& part : choice.found->life) sum += part.ns;
    if (sum == 0) continue;
    json::object args{{"start_ns", choice.found->life.front().start},
                      {"ns", sum},
                      {"prompt tokens", a.usage.prompt_tokens},
                      {"cached tokens", a.usage.cached_tokens},
                      {"completion tokens", a.usage.completion_tokens}};
    if (!choice.found->live) args["finish reason"] = finish_reason_name(a.reason);
    if (choice.input) args["input"] = *choice.input;
    if (choice.output) args["output"] = *choice.output;
    out.slice("request", kRequest, track, choice.found->life.front().start, sum, std::move(args));
    for (const LifePart& part : choice.found->life)
      out.slice(life_kind_name(part.kind), kRequest, track, part.start, part.ns,
                part_args(part, names));
    add_steps(out, choice, track, all);
  }
  out.sort();
  return {{"displayTimeUnit", "ms"}, {"traceEvents", out.take()}};
}

}  // namespace vitrine
