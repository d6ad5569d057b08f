#include "trace/reducer.h"

#include <algorithm>
#include <utility>

#include "trace/packing.h"

namespace vitrine {

void TraceState::apply(const PackedEvent& event) {
  VT_CHECK(event.seq == seq + 1, "event {} after {}", event.seq, seq);
  seq = event.seq;
  switch (event.kind) {
    case EventKind::kArrive: {
      const auto e = unpacked<ArriveFields, ArriveEvent>(event.bytes);
      sequences[e.sequence] = {.prompt = e.prompt, .prefill_end = e.prompt};
      break;
    }
    case EventKind::kPlan: {
      const auto e = unpacked<PlanFields, PlanEvent>(event.bytes);
      for (const Preempted& p : e.preempt) {
        auto found = sequences.find(p.sequence);
        if (found == sequences.end()) continue;
        Sequence& s = found->second;
        s.phase = Phase::kPreempted, s.slot = -1, s.computed = 0;
        s.prefill_end = p.prefill_end;
        ++s.preemptions;
      }
      for (const Admitted& a : e.admit) {
        auto found = sequences.find(a.sequence);
        if (found == sequences.end()) continue;
        Sequence& s = found->second;
        if (s.phase == Phase::kWaiting) s.cached = a.cached;
        s.slot = a.slot, s.computed = a.computed;
        s.phase = s.computed < s.prefill_end ? Phase::kPrefill : Phase::kDecode;
      }
      blocked = e.blocked;
      lost |= e.lost;
      change(e.pages);
      break;
    }
    case EventKind::kStep: {
      const auto e = unpacked<StepFields, StepEvent>(event.bytes);
      for (const StepEntry& entry : e.record.entries) row(entry);
      for (const BeamChange& b : e.record.beams) {
        auto found = sequences.find(b.sequence);
        if (found == sequences.end()) continue;
        Sequence& s = found->second;
        s.computed = b.computed, s.prefill_end = b.prefill_end, s.output = b.output;
        s.phase = s.computed < s.prefill_end ? Phase::kPrefill : Phase::kDecode;
      }
      lost |= e.lost;
      change(e.pages);
      break;
    }
    case EventKind::kEnd:
      sequences.erase(unpacked<EndFields, EndEvent>(event.bytes).sequence);
      break;
    case EventKind::kWritten:
      break;
  }
}

void TraceState::row(const StepEntry& e) {
  auto found = sequences.find(e.sequence);
  if (found == sequences.end()) return;  // it has ended
  Sequence& s = found->second;
  // A choice that shares a prompt begins with none of it computed.
  const int from = std::min(e.first, s.computed), to = e.first + e.kept;
  s.slot = e.slot, s.computed = to, s.output += e.drawn;
  s.phase = s.computed < s.prefill_end ? Phase::kPrefill : Phase::kDecode;
  auto table = tables.find(e.sequence);
  if (table == tables.end()) return;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto& pages = table->second[g];
    const int size = groups[g].page_size;
    for (int i = from / size; i * size < to && i < static_cast<int>(pages.size()); ++i) {
      if (pages[i] < 0) continue;
      Page& page = groups[g].pages[pages[i]];
      page.fill = std::max(page.fill, std::min(size, to - i * size));
    }
  }
}

// What those that hold it now know to be there: a choice that shares a prompt can have the page of its end alone
// while the step that computes it is not through.
void TraceState::refill(int group, std::int32_t page, int index) {
  Page& p = groups[group].pages[page];
  if (p.named) return;
  const int size = groups[group].page_size;
  int fill = 0;
  for (const auto& [id, table] : tables) {
    const auto& pages = table[group];
    if (index >= static_cast<int>(pages.size()) || pages[index] != page) continue;
    auto owner = sequences.find(id);
    if (owner == sequences.end()) return;  // it has ended, and leaves the page as it is
    fill = std::max(fill, std::clamp(owner->second.computed - index * size, 0, size));
  }
  p.fill = fill;
}

void TraceState::release(const PageChange& c) {
  Page& page = groups[c.group].pages[c.page];
  page.holders = c.holders;
  if (c.holders == 0 && !page.named) page.fill = 0;
  auto table = tables.find(c.sequence);
  if (table == tables.end()) return;
  auto& pages = table->second[c.group];
  const auto at = static_cast<std::size_t>(c.index);
  if (at >= pages.size() || pages[at] != c.page) return;
  pages[at] = -1;
  if (c.holders > 0) refill(c.group, c.page, c.index);
  while (!pages.empty() && pages.back() < 0) pages.pop_back();
  if (std::all_of(table->second.begin(), table->second.end(), [](auto& p) { return p.empty(); }))
    tables.erase(table);
}

void TraceState::change(std::span<const PageChange> changes) {
  for (const PageChange& c : changes) {
    Page& page = groups[c.group].pages[c.page];
    switch (c.op) {
      case PageOp::kEvict:
        page = {};
        continue;
      case PageOp::kName:
        page.named = true;
        continue;
      case PageOp::kRelease:
        release(c);
        continue;
      case PageOp::kTake:
      case PageOp::kCopy:
        page = {};
        break;
      case PageOp::kAdopt:
      case PageOp::kShare:
        break;
    }
    page.holders = c.holders;
    auto& table = tables[c.sequence];
    table.resize(groups.size());
    auto& pages = table[c.group];
    const auto at = static_cast<std::size_t>(c.index);
    if (pages.size() <= at) pages.resize(at + 1, -1);
    if (c.op == PageOp::kCopy && pages[at] >= 0) {
      const int before = std::exchange(pages[at], c.page);
      --groups[c.group].pages[before].holders;
      refill(c.group, before, c.index);
      refill(c.group, c.page, c.index);
    }
    pages[at] = c.page;
  }
}

}  // namespace vitrine
