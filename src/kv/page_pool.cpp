#include "kv/page_pool.h"

#include <algorithm>

#include "base/check.h"

namespace vitrine {

PagePool::PagePool(int pages, int page_size)
    : page_size_(page_size),
      pages_(pages),
      tokens_(static_cast<std::size_t>(pages) * page_size),
      keys_(pages),
      children_(pages),
      ghosts_(pages),
      ring_(pages) {
  free_.reserve(pages);
  for (int i = pages - 1; i >= 0; --i) free_.push_back(i);
}

void PagePool::check(PageId page) const {
  VT_CHECK(page >= 0 && page < total() && pages_[page].holders > 0, "page {} of {} is not held",
           page, total());
}

PageId PagePool::take() {
  PageId page = oldest_;
  if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
  } else if (page != kNoPage) {
    remember_evicted(pages_[page].key);
    leave_cached(page);
    forget(page);
    ++evictions_;
  } else {
    return kNoPage;
  }
  pages_[page].holders = 1;
  return page;
}

void PagePool::hold(PageId page) {
  Page& p = pages_[page];
  if (p.holders == 0) {
    VT_CHECK(p.named, "page {} is free", page);
    leave_cached(page);
  }
  if (++p.holders == 2) ++shared_;
}

void PagePool::release(PageId page) {
  check(page);
  Page& p = pages_[page];
  if (p.holders == 2) --shared_;
  if (--p.holders > 0) return;
  if (p.named)
    make_cached(page);
  else
    free_.push_back(page);
}

void PagePool::make_cached(PageId page) {
  Page& p = pages_[page];
  p.used_ns = now_ns_;
  p.older = newest_, p.newer = kNoPage;
  (newest_ != kNoPage ? pages_[newest_].newer : oldest_) = page;
  newest_ = page;
  ++cached_;
}

void PagePool::leave_cached(PageId page) {
  Page& p = pages_[page];
  (p.older != kNoPage ? pages_[p.older].newer : oldest_) = p.newer;
  (p.newer != kNoPage ? pages_[p.newer].older : newest_) = p.older;
  --cached_;
}

void PagePool::name(PageId page, const PrefixKey& key, const PrefixKey& parent, int index,
                    std::span<const std::int32_t> tokens) {
  check(page);
  Page& p = pages_[page];
  if (p.named || keys_.find(key) >= 0) return;
  p.named = true, p.key = key, p.parent = parent, p.index = index;
  keys_.insert(key, page);
  ghosts_.erase(key);
  std::copy(tokens.begin(), tokens.end(), tokens_of(page).begin());
  p.later = kNoPage, p.earlier = children_.find(parent);
  if (p.earlier != kNoPage) pages_[p.earlier].later = page;
  children_.put(parent, page);
}

void PagePool::forget(PageId page) {
  Page& p = pages_[page];
  keys_.erase(p.key);
  if (p.earlier != kNoPage) pages_[p.earlier].later = p.later;
  if (p.later != kNoPage)
    pages_[p.later].earlier = p.earlier;
  else if (p.earlier != kNoPage)
    children_.put(p.parent, p.earlier);
  else
    children_.erase(p.parent);
  p.named = false;
}

// The ring has one entry per page. The entry of a key that was computed again is skipped.
void PagePool::remember_evicted(const PrefixKey& key) {
  auto at = static_cast<std::int32_t>(ghost_count_ % ring_.size());
  if (ghost_count_ >= ring_.size() && ghosts_.find(ring_[at]) == at) ghosts_.erase(ring_[at]);
  ring_[at] = key;
  ghosts_.put(key, at);
  ++ghost_count_;
}

std::span<const std::int32_t> PagePool::nearest(const PrefixKey& parent,
                                                std::span<const std::int32_t> tokens) const {
  std::span<const std::int32_t> best;
  std::ptrdiff_t agree = -1;
  PageId page = children_.find(parent);
  for (int i = 0; i < kNearest && page != kNoPage; ++i, page = pages_[page].earlier) {
    std::span<const std::int32_t> there(
        tokens_.data() + static_cast<std::size_t>(page) * page_size_, page_size_);
    auto same = std::mismatch(tokens.begin(), tokens.end(), there.begin(), there.end()).first -
                tokens.begin();
    if (same > agree) agree = same, best = there;
  }
  return best;
}

void PagePool::list_named(NamedPages& out) const {
  out.page_size = page_size_;
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    const Page& p = pages_[i];
    if (!p.named) continue;
    out.pages.push_back({p.key, p.parent, p.index, p.holders, p.used_ns});
    const auto from = tokens_.begin() + static_cast<std::ptrdiff_t>(i) * page_size_;
    out.tokens.insert(out.tokens.end(), from, from + page_size_);
  }
}

}  // namespace vitrine
