// A static trie over byte strings, for longest and common prefixes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace vitrine {

class Trie {
 public:
  // Keys longer than this are left out: a walk from every position of a text must stay linear.
  static constexpr std::size_t kLongestKey = 512;

  // The first value of equal keys wins; empty keys are left out.
  explicit Trie(std::vector<std::pair<std::string_view, std::int32_t>> keys);

  static constexpr std::uint32_t kRoot = 0;
  static constexpr std::uint32_t kNone = ~0u;
  std::uint32_t child(std::uint32_t node, unsigned char label) const {
    if (node == kRoot) return root_[label];
    for (std::uint32_t e = nodes_[node].first; e < nodes_[node + 1].first; ++e)
      if (labels_[e] >= label) return labels_[e] == label ? e + 1 : kNone;
    return kNone;
  }
  // The value of the key that ends at `node`, or -1.
  std::int32_t value(std::uint32_t node) const { return nodes_[node].value; }

 private:
  // Nodes in breadth-first order: the edge e leads to node e + 1, and the edges of a node are
  // consecutive with ascending labels.
  struct Node {
    std::uint32_t first;
    std::int32_t value;
  };
  std::vector<Node> nodes_;
  std::vector<unsigned char> labels_;
  std::array<std::uint32_t, 256> root_;
};

}  // namespace vitrine
