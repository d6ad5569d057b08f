#include "server/answer/perfetto.h"

#include <algorithm>
#include <utility>

#include "server/answer/chrome_trace.h"

namespace vitrine {
namespace {

constexpr int kEngine = 1, kRequests = 2, kSteps = 1;

}  // namespace

json::object perfetto_json(std::span<const StepRecord> steps,
                           const std::map<std::uint64_t, std::string>& names) {
  ChromeTrace out(steps.empty() ? 0 : steps.front().start_ns);
  out.name("process_name", kEngine, 0, "engine");
  out.name("process_name", kRequests, 0, "requests");
  out.name("thread_name", kEngine, kSteps, "steps");
  std::map<std::uint64_t, bool> seen;
  std::int64_t end = 0;  // of the step before: parts of overlapping steps are cut there
  for (const StepRecord& r : steps) {
    const std::int64_t start = std::max(r.start_ns, end);
    const std::int64_t length = std::max<std::int64_t>(0, r.start_ns + r.total_ns() - start);
    end = start + length;
    out.slice(fmt::format("step {}", r.step), kEngine, kSteps, start, length,
              {{"prefill rows", r.prefill_tokens},
               {"decode rows", r.decode_tokens},
               {"sequences", r.entries.size()},
               {"flops", r.flops},
               {"weight bytes", r.weight_bytes},
               {"kv read bytes", r.kv_read_bytes},
               {"wall ns", r.wall_ns}});
    std::int64_t at = start;
    struct Part {
      const char* name;
      std::int64_t ns;
    };
    for (const Part& part : {Part{"plan", r.plan_ns}, Part{"forward", r.forward_ns},
                             Part{"sample", r.sample_ns}, Part{"commit", r.commit_ns}}) {
      const std::int64_t ns = std::min(part.ns, end - at);
      out.slice(part.name, kEngine, kSteps, at, ns);
      at += ns;
    }
    out.counter("rows", kEngine, start,
                {{"prefill", r.prefill_tokens}, {"decode", r.decode_tokens}});
    out.counter("sequences", kEngine, start, {{"running", r.running}, {"waiting", r.waiting}});
    out.counter("pages", kEngine, start, {{"used", r.pages_used}, {"cached", r.pages_cached}});
    for (const StepEntry& e : r.entries) {
      if (!std::exchange(seen[e.sequence], true)) {
        auto known = names.find(e.sequence);
        out.name("thread_name", kRequests, e.sequence,
                 known != names.end() ? fmt::format("#{} {}", e.sequence, known->second)
                                      : fmt::format("#{}", e.sequence));
      }
      out.slice(e.phase == Phase::kPrefill ? "prefill" : "decode", kRequests, e.sequence, start,
                length,
                {{"step", r.step},
                 {"first position", e.first},
                 {"rows", e.tokens},
                 {"slot", e.slot},
                 {"flops", e.flops}});
    }
  }
  out.sort();
  return {{"displayTimeUnit", "ms"}, {"traceEvents", out.take()}};
}

}  // namespace vitrine
