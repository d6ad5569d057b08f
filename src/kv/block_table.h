// One sequence's pages of one group: entry i covers positions i*page_size .. (i+1)*page_size-1.
// A windowed group gives pages back once the window has passed them; their entries are kNoPage.
// Several tables may hold the same page; only a page with one holder may be written to.
#pragma once

#include <vector>

#include "kv/page_pool.h"

namespace vitrine {

struct PageCopy {
  PageId from = kNoPage, to = kNoPage;
};

class BlockTable {
 public:
  BlockTable(int page_size, int window, int max_positions);

  // Pages that must be taken before positions [from, to) can be written: those that are missing,
  // and a copy of the page that `from` lies in when others hold it too.
  int needed(const PagePool& pool, int from, int to) const;
  // Whether that is none: most rows of a decoding sequence need no page.
  bool has_room(const PagePool& pool, int from, int to) const {
    const auto at = static_cast<std::size_t>(from / page_size_);
    return to <= static_cast<int>(pages_.size()) * page_size_ && at < pages_.size() &&
           (pages_[at] == kNoPage || pool.holders(pages_[at]) <= 1);
  }
  // Takes them; the pool must have that many. The copy to make before writing, if any.
  PageCopy grow(PagePool& pool, int from, int to);
  // Holds pages of another sequence or of the cache. The table must be empty. `first` entries
  // before them are behind the window.
  void adopt(PagePool& pool, int first, const std::vector<PageId>& pages);
  void share(PagePool& pool, const BlockTable& other);
  // Takes back what was written at `length` and after it: gives back the pages that hold nothing
  // before it. Positions before it that are still in the window stay as they are.
  void truncate(PagePool& pool, int length);
  // Gives back pages that no row at a position >= next_position can see.
  void release_behind_window(PagePool& pool, int next_position);
  // The pages that truncate() leaves, by their number.
  int kept(int length) const;
  // The last page first, so that the end of a prefix makes room before its beginning.
  void release_all(PagePool& pool);

  const std::vector<PageId>& pages() const { return pages_; }
  int held() const { return held_; }
  int first() const { return first_; }  // entries before it are behind the window
  bool windowed() const { return window_ > 0; }
  // The first entry that a row at `position` can see.
  int first_seen(int position) const;
  // Slot of a position: page * page_size + offset.
  std::int32_t slot(int position) const;

 private:
  int page_size_, window_;
  int held_ = 0;
  int first_ = 0;  // entries before it are behind the window
  std::vector<PageId> pages_;
};

}  // namespace vitrine
