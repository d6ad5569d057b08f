#include "kv/page_pool.h"

#include <algorithm>

#include "base/check.h"

namespace vitrine {

PagePool::PagePool(int pages) : held_(pages, false) {
  free_.reserve(pages);
  for (int i = pages - 1; i >= 0; --i) free_.push_back(i);
}

PageId PagePool::take() {
  if (free_.empty()) return kNoPage;
  PageId page = free_.back();
  free_.pop_back();
  held_[page] = true;
  return page;
}

void PagePool::give_back(PageId page) {
  VT_CHECK(page >= 0 && page < total() && held_[page], "page {} of {} is not held", page, total());
  held_[page] = false;
  free_.push_back(page);
}

BlockTable::BlockTable(int page_size, int window, int max_positions)
    : page_size_(page_size), window_(window) {
  pages_.reserve((max_positions + page_size - 1) / page_size);
}

int BlockTable::missing(int length) const {
  int wanted = (length + page_size_ - 1) / page_size_;
  return std::max(0, wanted - static_cast<int>(pages_.size()));
}

void BlockTable::grow(PagePool& pool, int length) {
  for (int n = missing(length); n > 0; --n) {
    PageId page = pool.take();
    VT_CHECK(page != kNoPage, "no free page of {}", pool.total());
    pages_.push_back(page);
    ++held_;
  }
}

void BlockTable::release_behind_window(PagePool& pool, int next_position) {
  if (window_ == 0) return;
  int first_seen = std::max(0, next_position - window_ + 1) / page_size_;
  for (; first_ < first_seen && first_ < static_cast<int>(pages_.size()); ++first_) {
    pool.give_back(pages_[first_]);
    pages_[first_] = kNoPage;
    --held_;
  }
}

void BlockTable::release_all(PagePool& pool) {
  for (PageId page : pages_)
    if (page != kNoPage) pool.give_back(page);
  pages_.clear();
  held_ = first_ = 0;
}

std::int32_t BlockTable::slot(int position) const {
  PageId page = pages_[position / page_size_];
  VT_CHECK(page != kNoPage, "position {} has no page", position);
  return page * page_size_ + position % page_size_;
}

}  // namespace vitrine
