#include "kv/block_table.h"

#include <algorithm>

#include "base/check.h"

namespace vitrine {

BlockTable::BlockTable(int page_size, int window, int max_positions)
    : page_size_(page_size), window_(window) {
  pages_.reserve((max_positions + page_size - 1) / page_size);
}

int BlockTable::needed(const PagePool& pool, int from, int to) const {
  int size = static_cast<int>(pages_.size()), at = from / page_size_;
  int missing = std::max(0, (to + page_size_ - 1) / page_size_ - size);
  bool copy = at < size && pages_[at] != kNoPage && pool.holders(pages_[at]) > 1;
  return missing + (copy ? 1 : 0);
}

PageCopy BlockTable::grow(PagePool& pool, int from, int to) {
  auto take = [&] {
    PageId page = pool.take();
    VT_CHECK(page != kNoPage, "no page left of {}", pool.total());
    return page;
  };
  PageCopy copy;
  std::size_t at = from / page_size_;
  if (at < pages_.size() && pages_[at] != kNoPage && pool.holders(pages_[at]) > 1) {
    copy = {pages_[at], take()};
    pool.release(pages_[at]);
    pages_[at] = copy.to;
  }
  auto wanted = static_cast<std::size_t>((to + page_size_ - 1) / page_size_);
  for (; pages_.size() < wanted; ++held_) pages_.push_back(take());
  return copy;
}

void BlockTable::adopt(PagePool& pool, int first, const std::vector<PageId>& pages) {
  VT_CHECK(pages_.empty(), "{} pages", pages_.size());
  pages_.assign(first, kNoPage);
  first_ = first;
  for (PageId page : pages) {
    pool.hold(page);
    pages_.push_back(page);
    ++held_;
  }
}

void BlockTable::share(PagePool& pool, const BlockTable& other) {
  VT_CHECK(pages_.empty(), "{} pages", pages_.size());
  pages_.assign(other.pages_.begin(), other.pages_.end());
  first_ = other.first_, held_ = other.held_;
  for (PageId page : pages_)
    if (page != kNoPage) pool.hold(page);
}

int BlockTable::first_seen(int position) const {
  return window_ == 0 ? 0 : std::max(0, position - window_ + 1) / page_size_;
}

void BlockTable::release_behind_window(PagePool& pool, int next_position) {
  int end = std::min(first_seen(next_position), static_cast<int>(pages_.size()));
  for (; first_ < end; ++first_) {
    pool.release(pages_[first_]);
    pages_[first_] = kNoPage;
    --held_;
  }
}

int BlockTable::kept(int length) const {
  return std::max((length + page_size_ - 1) / page_size_, first_);
}

void BlockTable::truncate(PagePool& pool, int length) {
  const int keep = kept(length);
  for (; static_cast<int>(pages_.size()) > keep; pages_.pop_back(), --held_)
    pool.release(pages_.back());
}

void BlockTable::release_all(PagePool& pool) {
  for (; !pages_.empty(); pages_.pop_back())
    if (pages_.back() != kNoPage) pool.release(pages_.back());
  held_ = first_ = 0;
}

std::int32_t BlockTable::slot(int position) const {
  PageId page = pages_[position / page_size_];
  VT_CHECK(page != kNoPage, "position {} has no page", position);
  return page * page_size_ + position % page_size_;
}

}  // namespace vitrine
