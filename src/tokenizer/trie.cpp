#include "tokenizer/trie.h"

#include <algorithm>

namespace vitrine {

Trie::Trie(std::vector<std::pair<std::string_view, std::int32_t>> keys) {
  std::erase_if(
      keys, [](const auto& key) { return key.first.empty() || key.first.size() > kLongestKey; });
  std::stable_sort(keys.begin(), keys.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  keys.erase(std::unique(keys.begin(), keys.end(),
                         [](const auto& a, const auto& b) { return a.first == b.first; }),
             keys.end());
  struct Range {
    std::size_t begin, end, depth;
  };
  std::vector<Range> level = {{0, keys.size(), 0}};
  while (!level.empty()) {
    std::vector<Range> deeper;
    for (Range range : level) {
      Node node{static_cast<std::uint32_t>(labels_.size()), -1};
      std::size_t i = range.begin;
      if (i < range.end && keys[i].first.size() == range.depth) node.value = keys[i++].second;
      while (i < range.end) {
        char label = keys[i].first[range.depth];
        std::size_t begin = i;
        while (i < range.end && keys[i].first[range.depth] == label) ++i;
        labels_.push_back(static_cast<unsigned char>(label));
        deeper.push_back({begin, i, range.depth + 1});
      }
      nodes_.push_back(node);
    }
    level = std::move(deeper);
  }
  nodes_.push_back({static_cast<std::uint32_t>(labels_.size()), -1});
  root_.fill(kNone);
  for (std::uint32_t e = 0; e < nodes_[1].first; ++e) root_[labels_[e]] = e + 1;
}

}  // namespace vitrine
