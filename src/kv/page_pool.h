// The pages of one cache group: which are free. Knows nothing of what is in a page.
// Engine thread only. Nothing allocates after construction.
#pragma once

#include <cstdint>
#include <vector>

namespace vitrine {

using PageId = std::int32_t;
inline constexpr PageId kNoPage = -1;

class PagePool {
 public:
  explicit PagePool(int pages);
  int total() const { return static_cast<int>(held_.size()); }
  int free() const { return static_cast<int>(free_.size()); }
  int used() const { return total() - free(); }
  // kNoPage when none is free.
  PageId take();
  void give_back(PageId page);

 private:
  std::vector<PageId> free_;  // a stack: the page given back last is warm in the cache
  std::vector<bool> held_;
};

// One sequence's pages of one group: entry i covers positions i*page_size .. (i+1)*page_size-1.
// A windowed group gives pages back once the window has passed them; their entries are kNoPage.
class BlockTable {
 public:
  BlockTable(int page_size, int window, int max_positions);
  // Pages that must be taken so that positions [0, length) have one (those behind the window not).
  int missing(int length) const;
  // Takes them. The pool must have that many.
  void grow(PagePool& pool, int length);
  // Gives back pages that no row at a position >= next_position can see.
  void release_behind_window(PagePool& pool, int next_position);
  void release_all(PagePool& pool);
  const std::vector<PageId>& pages() const { return pages_; }
  int held() const { return held_; }
  // Slot of a position: page * page_size + offset.
  std::int32_t slot(int position) const;

 private:
  int page_size_, window_;
  int held_ = 0;
  int first_ = 0;  // entries before it are behind the window
  std::vector<PageId> pages_;
};

}  // namespace vitrine
