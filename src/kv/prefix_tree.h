// What the prefix cache can find, as a tree: where prompts agree, and where they part. Pages that follow each
// other without a branch are one node.
#pragma once

#include <vector>

#include "kv/page_pool.h"

namespace vitrine {

struct PrefixNode {
  int parent = -1;                  // its place in the tree's nodes; -1: none
  int first = 0;                    // position of its first token
  int depth = 0;                    // branches above it
  int holders = 0;                  // the most that one of its pages has
  std::int64_t used_ns = 0;         // the latest of its pages, where none is held
  std::int64_t below = 0;           // pages of it and of all that follows
  std::vector<std::int32_t> pages;  // their places in NamedPages, in order
  // What came before it has been evicted: it is found again only when that is computed again.
  bool cut() const { return parent < 0 && first > 0; }
};

struct PrefixTree {
  std::vector<PrefixNode> nodes;  // parents before their children
  std::int64_t left_out = 0;      // pages of nodes that are not among them
};

struct PrefixTreeLimits {
  std::size_t nodes = 500;
  int depth = 64;          // branches above a node
  std::int64_t pages = 1;  // of a node and of all that follows
};
// The nodes with the most pages, they and all that follows, within the limits. Takes n log n for n pages, and
// is never deeper on the stack than one call.
PrefixTree prefix_tree(const NamedPages& named, const PrefixTreeLimits& limits);

}  // namespace vitrine
