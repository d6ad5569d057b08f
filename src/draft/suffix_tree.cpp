#include "draft/suffix_tree.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/keyed_hash.h"

namespace vitrine {
namespace {

// A token makes at most one leaf and splits at most one edge for each suffix in the end, but those of
// several suffixes may come with the same token, and close() may split once more for each.
constexpr std::size_t kSpareNodes = 3 * SuffixTree::kDepth + 1;
constexpr std::size_t kSpareTokens = 8;  // for a scope and a token
// The table is at most half full, so that probing is short.
constexpr std::size_t kNodesPerToken = 2, kPlacesPerNode = 2;

std::uint64_t hash_of_child(int parent, std::int32_t token) {
  return keyed_mix(static_cast<std::uint32_t>(parent), static_cast<std::uint32_t>(token));
}

// A scope is a hash already.
std::uint64_t hash_of_root(const SuffixScope& scope) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(scope[0])) << 32 |
         static_cast<std::uint32_t>(scope[1]);
}

}  // namespace

SuffixScope suffix_scope(std::string_view name) {
  SipHash<1, 3, true> hash(process_secret());
  hash.add(name.data(), name.size());
  const std::uint64_t words[] = {hash.finish(), hash.finish_second()};
  SuffixScope out;
  static_assert(sizeof out == sizeof words);
  std::memcpy(out.data(), words, sizeof out);
  return out;
}

SuffixTree::SuffixTree(std::size_t bytes) {
  constexpr std::size_t kNodeBytes = sizeof(Node) + kPlacesPerNode * sizeof(std::int32_t);
  constexpr std::size_t kSpareBytes =
      kSpareTokens * sizeof(std::int32_t) + kSpareNodes * kNodeBytes;
  constexpr std::size_t kTokenBytes = sizeof(std::int32_t) + kNodesPerToken * kNodeBytes;
  constexpr std::size_t kLeast = kDepth, kMost = 1 << 28;  // a place is a number of 31 bits
  static_assert(kSpareBytes + kLeast * kTokenBytes <= kLeastBytes);
  const std::size_t tokens =
      std::clamp(bytes > kSpareBytes ? (bytes - kSpareBytes) / kTokenBytes : 0, kLeast, kMost);
  max_tokens_ = tokens + kSpareTokens;
  max_nodes_ = kNodesPerToken * tokens + kSpareNodes;
  text_.reserve(max_tokens_);
  nodes_.reserve(max_nodes_);
  table_.assign(kPlacesPerNode * max_nodes_, 0);
}

std::size_t SuffixTree::bytes() const {
  return text_.capacity() * sizeof(std::int32_t) + nodes_.capacity() * sizeof(Node) +
         table_.capacity() * sizeof(std::int32_t);
}

void SuffixTree::clear() {
  text_.clear();
  nodes_.clear();
  open_ = false;
}

bool SuffixTree::full() const {
  return text_.size() + kSpareTokens > max_tokens_ || nodes_.size() + kSpareNodes > max_nodes_;
}

// ---- the table

// The node at a place of the table; kNone: it is free.
std::int32_t SuffixTree::node_at(std::size_t place) const {
  const std::int32_t node = table_[place];
  const bool holds = static_cast<std::size_t>(node) < nodes_.size() &&
                     nodes_[node].place == static_cast<std::int32_t>(place);
  return holds ? node : kNone;
}

// Where the first node stands that matches, or the free place behind those that do not.
template <typename Matches>
std::size_t SuffixTree::locate(std::uint64_t hash, const Matches& matches) const {
  __extension__ using Wide = unsigned __int128;
  auto i = static_cast<std::size_t>((static_cast<Wide>(hash) * table_.size()) >> 64);
  for (;; i = i + 1 < table_.size() ? i + 1 : 0) {
    ++work_;
    const std::int32_t node = node_at(i);
    if (node == kNone || matches(nodes_[node])) return i;
  }
}

// The same key may be there already: split() gives its place to another node first.
void SuffixTree::place(std::int32_t node, std::uint64_t hash) {
  nodes_[node].place = kNone;
  const std::size_t free = locate(hash, [](const Node&) { return false; });
  table_[free] = node;
  nodes_[node].place = static_cast<std::int32_t>(free);
}

std::int32_t SuffixTree::find_root(const SuffixScope& scope) const {
  return node_at(locate(hash_of_root(scope), [&](const Node& node) {
    return node.parent == kNone &&
           std::equal(scope.begin(), scope.end(), text_.begin() + node.label);
  }));
}

std::int32_t SuffixTree::find_child(std::int32_t parent, std::int32_t token) const {
  return node_at(locate(hash_of_child(parent, token), [&](const Node& node) {
    return node.parent == parent && text_[node.label] == token;
  }));
}

// ---- the tree

std::int32_t SuffixTree::add_node(std::int32_t parent, int label, int depth) {
  const auto node = static_cast<std::int32_t>(nodes_.size());
  VT_CHECK(nodes_.size() < max_nodes_, "{} nodes", max_nodes_);
  nodes_.push_back({.parent = parent, .label = label, .depth = depth});
  return node;
}

// The token that follows `depth` tokens on the edge to a node.
std::int32_t SuffixTree::label_at(const Node& node, int depth) const {
  return text_[node.label + depth - nodes_[node.parent].depth];
}

void SuffixTree::open(const SuffixScope& scope) {
  VT_CHECK(!open_ && !full());
  std::int32_t root = find_root(scope);
  if (root == kNone) {
    root = add_node(kNone, static_cast<int>(text_.size()), 0);
    text_.insert(text_.end(), scope.begin(), scope.end());
    place(root, hash_of_root(scope));
  }
  open_ = true;
  length_ = 0;
  on_[0] = root;
}

// From the longest suffix to the shortest: each is still where it was while a longer one splits its edge.
void SuffixTree::add(std::int32_t token) {
  VT_CHECK(open_ && !full());
  text_.push_back(token);
  for (int k = length_; k >= 0; --k) on_[k + 1] = step(on_[k], k, token);
  length_ = std::min(length_ + 1, kDepth - 1);
}

// Where the text ends on an edge, a node says that some that went into the edge went no further.
void SuffixTree::close() {
  VT_CHECK(open_);
  for (int k = length_; k > 0; --k)
    if (k < nodes_[on_[k]].depth) split(on_[k], k);
  open_ = false;
}

// A suffix of the open text, `depth` tokens on the way to `node`, becomes one longer. Returns the node
// that it is on the way to now.
std::int32_t SuffixTree::step(std::int32_t node, int depth, std::int32_t token) {
  ++work_;
  const int end = static_cast<int>(text_.size()) - 1;
  if (depth < nodes_[node].depth) {
    if (label_at(nodes_[node], depth) == token) return node;
    node = split(node, depth);
  } else if (Node& n = nodes_[node];
             depth > 0 && n.followed == 0 && n.label + depth - nodes_[n.parent].depth == end) {
    ++n.depth;  // the edge is the end of the open text itself
    return node;
  }
  std::int32_t child = find_child(node, token);
  if (child == kNone) {
    child = add_node(node, end, depth + 1);
    place(child, hash_of_child(node, token));
  }
  Node& parent = nodes_[node];
  ++parent.followed;
  ++nodes_[child].entered;
  if (parent.best == kNone || nodes_[child].entered >= nodes_[parent.best].entered)
    parent.best = child;
  return child;
}

// Makes a node on the edge to `lower`, at this depth. Suffixes of the open text that have come no
// further stop there: only they can, since close() has made nodes where others stopped.
std::int32_t SuffixTree::split(std::int32_t lower, int depth) {
  const std::int32_t upper = add_node(nodes_[lower].parent, nodes_[lower].label, depth);
  Node &up = nodes_[upper], &low = nodes_[lower], &parent = nodes_[up.parent];
  up.entered = low.entered;
  up.place = low.place;
  table_[up.place] = upper;
  if (parent.best == lower) parent.best = upper;
  for (int k = 1; k <= depth; ++k) {
    ++work_;
    if (on_[k] != lower) continue;
    on_[k] = upper;
    --low.entered;
  }
  low.parent = upper;
  low.label += depth - parent.depth;
  up.followed = low.entered;
  up.best = lower;
  place(lower, hash_of_child(upper, text_[low.label]));
  return upper;
}

// ---- what it knows

// Where these tokens lead from a root; no node: nowhere.
SuffixTree::Point SuffixTree::find(std::int32_t root, std::span<const std::int32_t> tokens) const {
  Point at{root, 0};
  for (const std::int32_t token : tokens) {
    ++work_;
    if (at.depth == nodes_[at.node].depth)
      at.node = find_child(at.node, token);
    else if (label_at(nodes_[at.node], at.depth) != token)
      at.node = kNone;
    if (at.node == kNone) return at;
    ++at.depth;
  }
  return at;
}

// The most frequent way on from a point.
SuffixDraft SuffixTree::follow(Point at, float min_probability, std::span<Guess> out) const {
  SuffixDraft draft;
  float probability = 1;
  for (Guess& guess : out) {
    ++work_;
    if (at.depth == nodes_[at.node].depth) {
      const Node& from = nodes_[at.node];
      if (from.best == kNone) break;
      at.node = from.best;
      probability *=
          static_cast<float>(nodes_[at.node].entered) / static_cast<float>(from.followed);
      if (probability < min_probability) break;
    }
    guess = {label_at(nodes_[at.node], at.depth), probability};
    ++at.depth;
    ++draft.count;
    draft.score += probability;
  }
  return draft;
}

SuffixDraft SuffixTree::draft(const SuffixScope& scope, std::span<const std::int32_t> context,
                              const SuffixLimits& limits, std::span<Guess> out) const {
  SuffixDraft best;
  if (nodes_.empty()) return best;
  const std::int32_t root = find_root(scope);
  if (root == kNone) return best;
  // What follows a context also follows the shorter one.
  std::array<Point, kDepth> matches;
  int longest = 0;
  for (int k = 1; k < kDepth && k <= static_cast<int>(context.size()); ++k) {
    const Point at = find(root, context.last(k));
    if (at.node == kNone || (at.depth == nodes_[at.node].depth && nodes_[at.node].followed == 0))
      break;
    matches[longest = k] = at;
  }
  std::array<Guess, kDepth> guesses;
  for (int k = longest; k > 0; --k) {
    const float carried = limits.per_matched * static_cast<float>(k);
    const std::size_t most = std::min<std::size_t>(
        {out.size(), static_cast<std::size_t>(kDepth - k),
         static_cast<std::size_t>(std::clamp(carried, 0.f, static_cast<float>(kDepth)))});
    if (static_cast<float>(most) <= best.score) continue;  // not even if all were certain
    const SuffixDraft found =
        follow(matches[k], limits.min_probability, std::span(guesses).first(most));
    if (found.score <= best.score) continue;
    best = found;
    std::copy_n(guesses.begin(), found.count, out.begin());
  }
  return best;
}

}  // namespace vitrine
