#include "kv/prefix_tree.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace vitrine {
namespace {

constexpr std::int32_t kNone = -1;

// Pages by their place in NamedPages.
struct Links {
  std::vector<std::int32_t> parent, children;  // of each: its parent, and how many follow it
  std::vector<std::int32_t> by_index;          // a page stands after its parent
  std::vector<std::int64_t> below;             // pages of it and of all that follows
};

Links links_of(const NamedPages& named) {
  const std::size_t n = named.pages.size();
  KeyTable places(static_cast<int>(std::max<std::size_t>(1, n)));
  for (std::size_t i = 0; i < n; ++i) places.put(named.pages[i].key, static_cast<std::int32_t>(i));
  Links out{std::vector<std::int32_t>(n, kNone), std::vector<std::int32_t>(n, 0),
            std::vector<std::int32_t>(n), std::vector<std::int64_t>(n, 1)};
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t at = places.find(named.pages[i].parent);
    // Keys are hashes: a parent is the page just before it, or the keys have met by chance.
    if (at == kNone || named.pages[at].index + 1 != named.pages[i].index) continue;
    out.parent[i] = at;
    ++out.children[at];
  }
  std::iota(out.by_index.begin(), out.by_index.end(), 0);
  std::sort(out.by_index.begin(), out.by_index.end(), [&](std::int32_t a, std::int32_t b) {
    const int x = named.pages[a].index, y = named.pages[b].index;
    return x != y ? x < y : a < b;
  });
  for (auto it = out.by_index.rbegin(); it != out.by_index.rend(); ++it)
    if (out.parent[*it] != kNone) out.below[out.parent[*it]] += out.below[*it];
  return out;
}

// Every node, parents before their children.
std::vector<PrefixNode> fold(const NamedPages& named, const Links& links) {
  std::vector<PrefixNode> nodes;
  std::vector<std::int32_t> node_of(named.pages.size(), kNone);
  for (const std::int32_t i : links.by_index) {
    const NamedPages::Page& page = named.pages[i];
    const std::int32_t before = links.parent[i];
    if (before != kNone && links.children[before] == 1) {
      node_of[i] = node_of[before];
    } else {
      node_of[i] = static_cast<std::int32_t>(nodes.size());
      PrefixNode& made = nodes.emplace_back();
      made.first = page.index * named.page_size, made.below = links.below[i];
      if (before != kNone) {
        made.parent = node_of[before];
        made.depth = nodes[made.parent].depth + 1;
      }
    }
    PrefixNode& node = nodes[node_of[i]];
    node.pages.push_back(i);
    node.holders = std::max(node.holders, page.holders);
    if (page.holders == 0) node.used_ns = std::max(node.used_ns, page.used_ns);
  }
  return nodes;
}

}  // namespace

PrefixTree prefix_tree(const NamedPages& named, const PrefixTreeLimits& limits) {
  std::vector<PrefixNode> all = fold(named, links_of(named));
  std::vector<std::vector<std::int32_t>> children(all.size());
  // The largest first; of equals the one that was there first. No child is larger than its parent.
  using Next = std::pair<std::int64_t, std::int32_t>;
  std::priority_queue<Next> next;
  const auto offer = [&](std::int32_t i) {
    if (all[i].below >= limits.pages && all[i].depth <= limits.depth) next.push({all[i].below, -i});
  };
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].parent == kNone)
      offer(static_cast<std::int32_t>(i));
    else
      children[all[i].parent].push_back(static_cast<std::int32_t>(i));
  PrefixTree out;
  out.left_out = static_cast<std::int64_t>(named.pages.size());
  std::vector<std::int32_t> place(all.size(), kNone);
  for (; !next.empty() && out.nodes.size() < limits.nodes;) {
    const std::int32_t i = -next.top().second;
    next.pop();
    place[i] = static_cast<std::int32_t>(out.nodes.size());
    PrefixNode& node = all[i];
    if (node.parent != kNone) node.parent = place[node.parent];
    out.left_out -= static_cast<std::int64_t>(node.pages.size());
    out.nodes.push_back(std::move(node));
    for (const std::int32_t child : children[i]) offer(child);
  }
  return out;
}

}  // namespace vitrine
