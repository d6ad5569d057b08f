// What the scheduler can tell about itself.
#include <algorithm>

#include "engine/scheduler.h"

namespace vitrine {

SequenceStats Scheduler::stats_of(const Sequence& s, Clock::time_point now) const {
  SequenceStats out;
  out.state = s.paused() ? SequenceState::kPaused
              : s.slot >= 0
                  ? (s.computed < s.prefill_end ? SequenceState::kPrefill : SequenceState::kDecode)
              : s.preempted ? SequenceState::kPreempted
                            : SequenceState::kWaiting;
  out.age_ms = std::chrono::duration<double, std::milli>(now - s.submitted).count();
  out.computed = s.computed;
  out.length = static_cast<int>(s.tokens.size());
  out.account = s.account;
  return out;
}

void Scheduler::fill(Snapshot& out, Clock::time_point now) const {
  for (const auto& s : running_)
    if (!s->finished) out.running.push_back(stats_of(*s, now));
  for (const auto& s : queue_.waiting()) out.waiting.push_back(stats_of(*s, now));
  if (!out.waiting.empty()) out.blocked = blocked_;
  for (int g = 0; g < cache_.groups(); ++g) {
    const PagePool& pool = cache_.pool(g);
    PoolStats stats{.window = plan_.groups[g].spec.window,
                    .page_size = plan_.page_size,
                    .total = pool.total(),
                    .free = pool.free(),
                    .cached = pool.cached(),
                    .used = pool.used(),
                    .shared = pool.shared(),
                    .page_bytes = plan_.groups[g].page_bytes};
    std::vector<int> tokens(pool.total(), 0);
    for (const auto& s : running_) {
      const auto& pages = s->tables[g].pages();
      for (int i = 0; i < static_cast<int>(pages.size()); ++i)
        if (pages[i] != kNoPage)
          tokens[pages[i]] = std::max(
              tokens[pages[i]], std::clamp(s->scheduled - i * plan_.page_size, 0, plan_.page_size));
    }
    for (int n : tokens) stats.tokens += n;
    out.pools.push_back(stats);
  }
}

PageMap Scheduler::page_map() const {
  PageMap out;
  for (int g = 0; g < cache_.groups(); ++g) {
    const PagePool& pool = cache_.pool(g);
    PageMap::Group& group =
        out.groups.emplace_back(PageMap::Group{plan_.groups[g].spec.window, plan_.page_size, {}});
    group.pages.resize(pool.total(), '.');
    for (int page = 0; page < pool.total(); ++page)
      if (pool.holders(page) > 0)
        group.pages[page] = 'u';
      else if (pool.named(page))
        group.pages[page] = 'c';
    for (const auto& s : running_)
      if (s->slot >= 0 && s->tables[g].held() > 0)
        out.tables.push_back({s->id, s->slot, g, s->scheduled, s->tables[g].pages()});
  }
  return out;
}

Metrics Scheduler::metrics() const {
  Metrics out = ledger_.metrics();
  out.running = running();
  out.waiting = waiting();
  for (int g = 0; g < cache_.groups(); ++g) {
    const PagePool& pool = cache_.pool(g);
    out.evictions += pool.evictions();
    out.kv_usage = std::max(out.kv_usage, static_cast<double>(pool.used()) / pool.total());
  }
  return out;
}

void Scheduler::check_integrity() const {
  for (int g = 0; g < cache_.groups(); ++g) {
    const PagePool& pool = cache_.pool(g);
    std::vector<int> holders(pool.total(), 0);
    auto count = [&](const Sequence& s) {
      int held = 0;
      for (PageId page : s.tables[g].pages())
        if (page != kNoPage) ++holders[page], ++held;
      VT_CHECK(held == s.tables[g].held(), "sequence {}: {} pages, {} by its own count", s.id, held,
               s.tables[g].held());
    };
    for (const auto& s : running_) count(*s);
    for (const auto& s : queue_.waiting())
      VT_CHECK(s->tables[g].held() == 0, "waiting sequence {} holds {} pages", s->id,
               s->tables[g].held());
    int used = 0, shared = 0;
    for (int page = 0; page < pool.total(); ++page) {
      VT_CHECK(holders[page] == pool.holders(page), "group {}, page {}: {} tables, {} holders", g,
               page, holders[page], pool.holders(page));
      used += holders[page] > 0, shared += holders[page] > 1;
    }
    VT_CHECK(used == pool.used() && shared == pool.shared(), "group {}: {} used, {} shared", g,
             used, shared);
  }
  VT_CHECK(running_.size() + free_slots_.size() == static_cast<std::size_t>(plan_.sequences),
           "{} running, {} free slots", running_.size(), free_slots_.size());
  queue_.check(static_cast<int>(std::count_if(running_.begin(), running_.end(), [](const auto& s) {
    return !s->finished && s->slot >= 0;
  })));
}

}  // namespace vitrine
