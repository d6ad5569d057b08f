// How often which token followed which tokens, in all texts that were added: a tree of their suffixes
// (Weiner, 1973), cut at kDepth tokens.
//
// A path from a root spells tokens that stand together in a text. Where only one token ever followed,
// the path has no node: an edge is a stretch of the text itself (path compression), so there are at
// most two nodes for a token that is added. Texts of different scopes hang from different roots.
//
// Each token that is added makes the last kDepth suffixes of its text one longer, which is at most
// kDepth steps down the tree: the work for a token is bounded, whatever the text. So is the memory: it
// is there from the start, and nothing allocates after construction.
//
// Nothing can be removed; everything can, at once (draft/suffix.h makes a history of that).
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "draft/source.h"

namespace vitrine {

// Texts are seen by drafts of the same scope only: 128 bits of a hash that nobody outside knows.
using SuffixScope = std::array<std::int32_t, 4>;
SuffixScope suffix_scope(std::string_view name);

struct SuffixLimits {
  float per_matched = 1;       // guesses for each token that matched: more context carries further
  float min_probability = .1;  // of a guess and all before it
};

// The guesses that were found, and how many of them are expected to be right.
struct SuffixDraft {
  int count = 0;
  float score = 0;
};

class SuffixTree {
 public:
  // Tokens on a path. A match of 16 leaves room for 16 guesses.
  static constexpr int kDepth = 32;

  // With at most this much memory, but never less than kLeastBytes.
  explicit SuffixTree(std::size_t bytes);
  static constexpr std::size_t kLeastBytes = 6400;
  std::size_t bytes() const;
  int nodes() const { return static_cast<int>(nodes_.size()); }
  void clear();  // in no time
  // There may be no room for another call of open() or add().
  bool full() const;

  // A text: open, its tokens one by one, close. What is added is found at once.
  void open(const SuffixScope& scope);
  void add(std::int32_t token);
  void close();

  // Guesses what follows `context`. For each number of its last tokens that have been followed by
  // something, goes down the most frequent way; of those, takes the guesses with the greatest sum of
  // probabilities, and of equals those of the longer match. A token's probability is its share of what
  // followed, and of equally frequent tokens the one that was seen last is the most frequent.
  SuffixDraft draft(const SuffixScope& scope, std::span<const std::int32_t> context,
                    const SuffixLimits& limits, std::span<Guess> out) const;

  // Steps from node to node and tokens compared so far: what work costs, for tests.
  std::uint64_t work() const { return work_; }

 private:
  static constexpr std::int32_t kNone = -1;
  // A node and the edge that leads to it.
  struct Node {
    std::int32_t parent = kNone;  // kNone: a root
    std::int32_t label = 0;       // where the edge's tokens stand in text_; of a root: its scope
    std::int32_t depth = 0;       // tokens from the root to the edge's end
    std::int32_t entered = 0;     // suffixes that go into the edge
    std::int32_t followed = 0;    // of these, those that go on into an edge of a child
    std::int32_t best = kNone;    // the child that most go into
    std::int32_t place = kNone;   // in table_
  };
  // A point of the tree: `depth` tokens from the root, at a node or on the edge that leads to it.
  struct Point {
    std::int32_t node, depth;
  };

  // The table.
  std::int32_t node_at(std::size_t place) const;
  template <typename Matches>
  std::size_t locate(std::uint64_t hash, const Matches& matches) const;
  void place(std::int32_t node, std::uint64_t hash);
  std::int32_t find_root(const SuffixScope& scope) const;
  std::int32_t find_child(std::int32_t parent, std::int32_t token) const;

  // The tree.
  std::int32_t add_node(std::int32_t parent, int label, int depth);
  std::int32_t label_at(const Node& node, int depth) const;
  std::int32_t step(std::int32_t node, int depth, std::int32_t token);
  std::int32_t split(std::int32_t node, int depth);

  // What it knows.
  Point find(std::int32_t root, std::span<const std::int32_t> tokens) const;
  SuffixDraft follow(Point at, float min_probability, std::span<Guess> out) const;

  std::size_t max_tokens_, max_nodes_;
  std::vector<std::int32_t> text_;
  std::vector<Node> nodes_;
  // Children by parent and first token, and roots by scope: a hash table with linear probing. An entry
  // holds if the node says that it is there; so clear() need not touch the table.
  std::vector<std::int32_t> table_;

  // The open text. The suffix of k tokens ends on the edge to on_[k] or at its end.
  bool open_ = false;
  int length_ = 0;  // of the longest suffix that can grow
  std::array<std::int32_t, kDepth + 1> on_{};
  mutable std::uint64_t work_ = 0;
};

}  // namespace vitrine
