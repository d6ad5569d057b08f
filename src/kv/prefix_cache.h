// Finds the prefix of a new sequence that earlier sequences left in the pools, and explains why the
// match ends where it does. A match reaches only as far as every cache group still has the pages it
// needs.
#pragma once

#include <span>
#include <vector>

#include "kv/block_table.h"

namespace vitrine {

enum class MissKind { kNone, kNew, kDiffers, kEvicted, kWindow };

struct Miss {
  MissKind kind = MissKind::kNone;
  int position = 0;                    // the first token that is not cached, or that differs
  std::int32_t here = -1, there = -1;  // kDiffers: the sequence's token, the cached one
};

class PrefixCache {
 public:
  struct Group {
    int pages, window;
  };
  PrefixCache(const std::vector<Group>& groups, int page_size);
  int groups() const { return static_cast<int>(pools_.size()); }
  PagePool& pool(int group) { return pools_[group]; }
  const PagePool& pool(int group) const { return pools_[group]; }

  // How many of the pages with these keys a sequence can reuse, from the first on.
  int match(std::span<const PrefixKey> keys) const;
  // Makes the tables (one per group, empty) hold the first `pages` of them.
  void adopt(std::span<const PrefixKey> keys, int pages, std::vector<BlockTable>& tables);
  // Why page `pages`, the first that was not matched, is not cached. `root` is the key before
  // page 0.
  Miss explain(std::span<const PrefixKey> keys, const PrefixKey& root,
               std::span<const std::int32_t> tokens, int pages) const;

 private:
  int first_needed(int group, int pages) const;

  int page_size_;
  std::vector<int> windows_;     // by group
  std::vector<PagePool> pools_;  // by group
  mutable std::vector<PageId> found_;
};

}  // namespace vitrine
