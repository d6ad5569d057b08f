// What becomes of pages, told to those who watch. In the order in which it happens: what a page is afterwards
// depends on it.
#include "base/process_clock.h"
#include "engine/scheduler.h"

namespace vitrine {

void Scheduler::tell(PageOp op, const Sequence& s, int group, int index, PageId page, int holders) {
  if (changes_.pages_wanted()) changes_.page({op, group, page, s.id, index, holders});
}

// All that its tables hold, which they did not before.
void Scheduler::tell_held(PageOp op, const Sequence& s) {
  if (!changes_.pages_wanted()) return;
  for (int g = 0; g < cache_.groups(); ++g) {
    const auto& pages = s.tables[g].pages();
    for (int i = 0; i < static_cast<int>(pages.size()); ++i)
      if (pages[i] != kNoPage) tell(op, s, g, i, pages[i], cache_.pool(g).holders(pages[i]));
  }
}

// A copy in the place of a page that others hold too, and pages from index `from` on. The pool had `free` free
// ones and gives these first: the others it has evicted.
void Scheduler::tell_grown(const Sequence& s, int group, std::size_t from, PageCopy copy,
                           int free) {
  if (!changes_.pages_wanted()) return;
  const auto& pages = s.tables[group].pages();
  auto taken = [&](PageOp op, std::size_t index) {
    if (--free < 0) changes_.page({PageOp::kEvict, group, pages[index], 0, 0, 0});
    tell(op, s, group, static_cast<int>(index), pages[index], 1);
  };
  if (copy.to != kNoPage)
    taken(PageOp::kCopy, static_cast<std::size_t>(s.scheduled / plan_.page_size));
  for (std::size_t i = from; i < pages.size(); ++i) taken(PageOp::kTake, i);
}

// Those with indices from `begin` to `end`, the last first. Before it is done.
void Scheduler::tell_released(const Sequence& s, int group, int begin, int end) {
  if (!changes_.pages_wanted()) return;
  const auto& pages = s.tables[group].pages();
  for (int i = end - 1; i >= begin; --i)
    if (pages[i] != kNoPage)
      tell(PageOp::kRelease, s, group, i, pages[i], cache_.pool(group).holders(pages[i]) - 1);
}

void Scheduler::release_pages(Sequence& s) {
  for (int g = 0; g < cache_.groups(); ++g) {
    if (s.tables[g].held() > 0)
      tell_released(s, g, 0, static_cast<int>(s.tables[g].pages().size()));
    s.tables[g].release_all(cache_.pool(g));
  }
}

void Scheduler::set_time(Clock::time_point now) {
  for (int g = 0; g < cache_.groups(); ++g) cache_.pool(g).set_time(process_ns(now));
}

}  // namespace vitrine
