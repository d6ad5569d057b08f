// The pages of one cache group: reference counts, which tokens a full page stands for (its key),
// and the order in which unused pages are evicted. Knows nothing of the K and V in a page. Engine
// thread only. Nothing allocates after construction.
//
// A page is free (no holder, no key), cached (no holder, but a key by which it can be found) or
// used (held by one or more block tables, with or without a key).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/key_table.h"

namespace vitrine {

using PageId = std::int32_t;
inline constexpr PageId kNoPage = -1;

// Pages that have a key. To be read when the pool has long gone on.
struct NamedPages {
  struct Page {
    PrefixKey key, parent;
    int index = 0;  // of the page in its prefix
    int holders = 0;
    std::int64_t used_ns = 0;  // when the last holder gave it back; of held ones meaningless
  };
  int page_size = 0;
  std::vector<Page> pages;
  std::vector<std::int32_t> tokens;  // page_size of each
  std::span<const std::int32_t> tokens_of(std::size_t page) const {
    const auto size = static_cast<std::size_t>(page_size);
    return std::span(tokens).subspan(page * size, size);
  }
};

class PagePool {
 public:
  PagePool(int pages, int page_size);
  int page_size() const { return page_size_; }
  int total() const { return static_cast<int>(pages_.size()); }
  int free() const { return static_cast<int>(free_.size()); }
  int cached() const { return cached_; }
  int used() const { return total() - free() - cached(); }
  int shared() const { return shared_; }  // held more than once
  int available() const { return free() + cached(); }
  std::uint64_t evictions() const { return evictions_; }

  // A page with one holder: a free one, else the cached one that was used least recently, whose key
  // is forgotten. kNoPage when all are used.
  PageId take();
  void hold(PageId page);     // adds a holder
  void release(PageId page);  // removes one
  int holders(PageId page) const { return pages_[page].holders; }
  bool named(PageId page) const { return pages_[page].named; }  // it has a key

  // The page is full: it stands for `key`, which follows `parent` with these tokens, as page `index` of its
  // prefix. No effect when another page has the key already.
  void name(PageId page, const PrefixKey& key, const PrefixKey& parent, int index,
            std::span<const std::int32_t> tokens);
  PageId find(const PrefixKey& key) const { return keys_.find(key); }
  // Whether the key lost its page recently.
  bool evicted(const PrefixKey& key) const { return ghosts_.find(key) >= 0; }
  // Of the pages that follow `parent`, the tokens of the one that agrees longest with `tokens`;
  // empty when there is none. Looks at the latest kNearest of them.
  std::span<const std::int32_t> nearest(const PrefixKey& parent,
                                        std::span<const std::int32_t> tokens) const;
  static constexpr int kNearest = 64;
  // What time it is from now on: pages without a holder keep when they lost the last one.
  void set_time(std::int64_t now_ns) { now_ns_ = now_ns; }
  // Of a page with a key: which of its prefix it is, and its tokens.
  int index(PageId page) const { return pages_[page].index; }
  std::span<const std::int32_t> tokens(PageId page) const {
    return {tokens_.data() + static_cast<std::size_t>(page) * page_size_,
            static_cast<std::size_t>(page_size_)};
  }
  // Appends every page that has a key, with its tokens.
  void list_named(NamedPages& out) const;

 private:
  struct Page {
    int holders = 0;
    bool named = false;
    int index = 0;
    PrefixKey key, parent;
    std::int64_t used_ns = 0;
    PageId older = kNoPage, newer = kNoPage;    // among cached pages
    PageId earlier = kNoPage, later = kNoPage;  // among those that follow the same parent
  };
  void check(PageId page) const;
  void make_cached(PageId page);
  void leave_cached(PageId page);
  void forget(PageId page);
  void remember_evicted(const PrefixKey& key);
  std::span<std::int32_t> tokens_of(PageId page) {
    return {tokens_.data() + static_cast<std::size_t>(page) * page_size_,
            static_cast<std::size_t>(page_size_)};
  }

  int page_size_;
  std::vector<Page> pages_;
  std::vector<std::int32_t> tokens_;  // of named pages
  std::vector<PageId> free_;          // a stack: the page given back last is warm in the cache
  PageId oldest_ = kNoPage, newest_ = kNoPage;
  int cached_ = 0, shared_ = 0;
  std::uint64_t evictions_ = 0;
  std::int64_t now_ns_ = 0;
  KeyTable keys_;      // key -> page
  KeyTable children_;  // parent -> the page that was named last among those that follow it
  KeyTable ghosts_;    // key of an evicted page -> its place in the ring
  std::vector<PrefixKey> ring_;
  std::size_t ghost_count_ = 0;  // keys evicted so far
};

}  // namespace vitrine
