#include "kv/prefix_cache.h"

#include <algorithm>

namespace vitrine {

PrefixCache::PrefixCache(const std::vector<Group>& groups, int page_size) : page_size_(page_size) {
  int most = 0;
  for (const Group& g : groups) {
    windows_.push_back(g.window);
    pools_.emplace_back(g.pages, page_size);
    most = std::max(most, g.pages);
  }
  found_.reserve(most);
}

// The first page that a row right after `pages` pages can see.
int PrefixCache::first_needed(int group, int pages) const {
  int window = windows_[group];
  return window == 0 ? 0 : std::max(0, pages * page_size_ - window + 1) / page_size_;
}

int PrefixCache::match(std::span<const PrefixKey> keys) const {
  int reach = static_cast<int>(keys.size());
  for (int g = 0; g < groups(); ++g) {
    if (windows_[g] > 0) continue;
    int n = 0;
    while (n < reach && pools_[g].find(keys[n]) != kNoPage) ++n;
    reach = n;
  }
  // Windowed groups may lack early pages: take the longest match with a whole window before its
  // end.
  for (bool again = true; again && reach > 0;) {
    again = false;
    for (int g = 0; g < groups() && !again; ++g) {
      if (windows_[g] == 0) continue;
      int first = first_needed(g, reach);
      for (int i = reach - 1; i >= first && !again; --i)
        if (pools_[g].find(keys[i]) == kNoPage) reach = i, again = true;
    }
  }
  return reach;
}

void PrefixCache::adopt(std::span<const PrefixKey> keys, int pages,
                        std::vector<BlockTable>& tables) {
  for (int g = 0; g < groups(); ++g) {
    int first = first_needed(g, pages);
    found_.clear();
    for (int i = first; i < pages; ++i) found_.push_back(pools_[g].find(keys[i]));
    tables[g].adopt(pools_[g], first, found_);
  }
}

Miss PrefixCache::explain(std::span<const PrefixKey> keys, const PrefixKey& root,
                          std::span<const std::int32_t> tokens, int pages) const {
  int position = pages * page_size_;
  if (pages == static_cast<int>(keys.size())) return {MissKind::kNone, position};
  bool there = false, evicted = false;
  for (const PagePool& pool : pools_) {
    there = there || pool.find(keys[pages]) != kNoPage;
    evicted = evicted || pool.evicted(keys[pages]);
  }
  if (evicted) return {MissKind::kEvicted, position};
  if (there) return {MissKind::kWindow, position};
  auto here = tokens.subspan(position, page_size_);
  const PrefixKey& parent = pages == 0 ? root : keys[pages - 1];
  auto nearest = pools_[0].nearest(parent, here);
  if (nearest.empty()) return {MissKind::kNew, position};
  auto [a, b] = std::mismatch(here.begin(), here.end(), nearest.begin());
  if (a == here.end()) return {MissKind::kWindow, position};
  return {MissKind::kDiffers, position + static_cast<int>(a - here.begin()), *a, *b};
}

}  // namespace vitrine
