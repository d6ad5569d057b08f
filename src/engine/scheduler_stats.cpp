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
  out.prefill_end = s.prefill_end;
  out.slot = s.slot;
  out.account = s.account;
  return out;
}

void Scheduler::fill(Snapshot& out, Clock::time_point now, bool forks) const {
  auto add_forks = [&](const Sequence& s) {
    for (const auto& f : s.forks)
      if (forks && !f->finished) out.waiting.push_back(stats_of(*f, now));
  };
  for (const auto& s : running_) {
    if (!s->finished) out.running.push_back(stats_of(*s, now));
    add_forks(*s);
  }
  for (const auto& s : queue_.waiting()) {
    if (!s->finished) out.waiting.push_back(stats_of(*s, now));
    add_forks(*s);
  }
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
        out.groups.emplace_back(PageMap::Group{.window = plan_.groups[g].spec.window,
                                               .page_size = plan_.page_size,
                                               .pages = std::string(pool.total(), '.'),
                                               .holders = std::vector<int>(pool.total()),
                                               .fill = std::vector<int>(pool.total()),
                                               .named = std::vector<bool>(pool.total())});
    for (int page = 0; page < pool.total(); ++page) {
      group.holders[page] = pool.holders(page), group.named[page] = pool.named(page);
      if (pool.named(page)) group.fill[page] = plan_.page_size;
      if (pool.holders(page) > 0)
        group.pages[page] = 'u';
      else if (pool.named(page))
        group.pages[page] = 'c';
    }
    for (const auto& s : running_) {
      const auto& pages = s->tables[g].pages();
      if (s->slot < 0 || s->tables[g].held() == 0) continue;
      for (int i = 0; i < static_cast<int>(pages.size()); ++i)
        if (pages[i] != kNoPage)
          group.fill[pages[i]] =
              std::max(group.fill[pages[i]],
                       std::clamp(s->computed - i * plan_.page_size, 0, plan_.page_size));
      out.tables.push_back(
          {s->id, s->finished ? -1 : s->slot, g, s->finished ? 0 : s->computed, pages});
    }
  }
  return out;
}

// Of a full page its key's tokens; of others those of a sequence that holds it.
std::optional<PageContent> Scheduler::page(int group, int page) const {
  if (group < 0 || group >= cache_.groups()) return std::nullopt;
  const PagePool& pool = cache_.pool(group);
  if (page < 0 || page >= pool.total()) return std::nullopt;
  PageContent out{.holders = pool.holders(page), .tokens = {}};
  out.state = out.holders > 0 ? 'u' : pool.named(page) ? 'c' : '.';
  if (pool.named(page)) {
    out.index = pool.index(page);
    const auto tokens = pool.tokens(page);
    out.tokens.assign(tokens.begin(), tokens.end());
    return out;
  }
  for (const auto& s : running_) {
    const auto& pages = s->tables[group].pages();
    const auto at = std::find(pages.begin(), pages.end(), page);
    if (at == pages.end()) continue;
    const auto index = static_cast<int>(at - pages.begin());
    const int first = index * plan_.page_size,
              known = std::min(s->computed, static_cast<int>(s->tokens.size())),
              end = std::min(first + plan_.page_size, known);
    if (end - first <= static_cast<int>(out.tokens.size())) continue;
    out.index = index;
    out.tokens.assign(s->tokens.begin() + first, s->tokens.begin() + end);
  }
  return out;
}

// Of the group that looks back farthest: it has a prefix as long as any other.
void Scheduler::list_named(NamedPages& out) const {
  int from = 0;
  for (int g = 0; g < cache_.groups(); ++g)
    if (plan_.groups[g].spec.window == 0) from = g;
  cache_.pool(from).list_named(out);
}

Metrics Scheduler::metrics() const {
  Metrics out = ledger_.metrics();
  out.running = running();
  out.waiting = waiting();
  out.speculates = speculator_.on() && speculator_.active();
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
  speculator_.check_integrity();
  VT_CHECK(running_.size() + free_slots_.size() == static_cast<std::size_t>(plan_.sequences),
           "{} running, {} free slots", running_.size(), free_slots_.size());
  queue_.check(static_cast<int>(std::count_if(running_.begin(), running_.end(), [](const auto& s) {
    return !s->finished && s->slot >= 0;
  })));
}

}  // namespace vitrine
