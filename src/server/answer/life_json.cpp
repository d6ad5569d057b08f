#include "server/answer/life_json.h"

#include <algorithm>

namespace vitrine {
namespace {

constexpr std::size_t kMostRan = 4;

bool has_behind(LifeCause cause) {
  return cause == LifeCause::kBehind || cause == LifeCause::kPrompt;
}

}  // namespace

Names::Names(std::span<const Account> ended, const Snapshot& now, const HttpRequest& viewer)
    : all_(viewer.rights.is_operator) {
  if (all_) return;
  const auto add = [&](const Account& a) {
    if (a.tenant == viewer.tenant) labels_[a.id] = a.label;
  };
  for (const Account& a : ended) add(a);
  for (const auto* list : {&now.running, &now.waiting})
    for (const SequenceStats& s : *list) add(s.account);
}

json::value Names::of(std::uint64_t sequence) const {
  if (all_) return sequence;
  const auto found = labels_.find(sequence);
  return found == labels_.end() ? json::value() : json::value(found->second);
}

std::string Names::text(std::uint64_t sequence) const {
  if (all_) return fmt::format("request {}", sequence);
  const auto found = labels_.find(sequence);
  return found == labels_.end() ? "another key's request" : "request " + found->second;
}

std::vector<Ran> ran_between(std::span<const StepRecord> steps, std::int64_t from,
                             std::int64_t to) {
  std::map<std::uint64_t, Ran> by;
  for (const StepRecord& r : steps) {
    const std::int64_t begin = std::max(from, r.wall_from_ns);
    const std::int64_t end = std::min(to, r.wall_from_ns + r.wall_ns);
    if (begin >= end) continue;
    const double part = static_cast<double>(end - begin) / static_cast<double>(r.wall_ns);
    for (const StepEntry& e : r.entries) {
      Ran& ran = by[e.sequence];
      ran.sequence = e.sequence;
      const bool prefill = e.phase == Phase::kPrefill;
      (prefill ? ran.prefill_ns : ran.decode_ns) +=
          static_cast<std::int64_t>(part * static_cast<double>(e.share_ns));
      (prefill ? ran.prefilled : ran.decoded) += e.tokens;
    }
  }
  std::vector<Ran> out;
  for (const auto& [id, ran] : by) out.push_back(ran);
  std::stable_sort(out.begin(), out.end(),
                   [](const Ran& a, const Ran& b) { return a.ns() > b.ns(); });
  return out;
}

std::vector<StepRecord> steps_of_queue(const Engine& engine, const Account& a) {
  const bool ran = a.steps > 0;
  const std::uint64_t most =
      ran ? a.first_step - std::min(a.came_before, a.first_step) : kMostQueueSteps;
  return engine.steps_since(a.came_before, std::min(most, kMostQueueSteps));
}

json::array life_json(std::span<const LifePart> life, std::span<const StepRecord> queue_steps,
                      const Names& names) {
  json::array out;
  for (const LifePart& part : life) {
    json::object about;
    if (part.cause != LifeCause::kNone) about["reason"] = life_cause_name(part.cause);
    if (part.by != 0 && has_behind(part.cause)) about["behind"] = json::array{names.of(part.by)};
    if (part.by != 0 && part.kind == LifeKind::kPreempted) about["by"] = names.of(part.by);
    if (part.sum_of > 0) about["sum_of"] = part.sum_of;
    if (part.kind == LifeKind::kQueue && part.cause != LifeCause::kPrompt) {
      json::array list;
      for (const Ran& ran : ran_between(queue_steps, part.start, part.start + part.ns)) {
        if (list.size() == kMostRan) break;
        // A key hears of its own requests.
        if (names.hides(ran.sequence) || ran.ns() == 0) continue;
        list.push_back(json::array{names.of(ran.sequence), ran.ns(), ran.prefilled, ran.decoded});
      }
      if (!list.empty()) about["ran"] = std::move(list);
    }
    out.push_back(json::array{life_kind_name(part.kind), part.start, part.ns,
                              about.empty() ? json::value() : json::value(std::move(about))});
  }
  return out;
}

}  // namespace vitrine
