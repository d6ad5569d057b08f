#include "grammar/token_trie.h"

#include <algorithm>
#include <numeric>

namespace vitrine::grammar {

TokenTrie::TokenTrie(std::vector<std::string> pieces)
    : pieces_(std::move(pieces)), same_(pieces_.size(), -1) {
  std::vector<std::int32_t> order(pieces_.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order,
                [&](std::int32_t id) { return pieces_[id].empty() || pieces_[id].size() > 255; });
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const int c = pieces_[a].compare(pieces_[b]);
    return c != 0 ? c < 0 : a < b;
  });
  std::vector<std::uint32_t> path;  // nodes of the token before
  std::int32_t last = -1;
  for (std::int32_t id : order) {
    const std::string& piece = pieces_[id];
    if (last >= 0 && pieces_[last] == piece) {
      last = same_[last] = id;
      nodes_[path.back()].shared = true;
      continue;
    }
    std::size_t common = 0;
    while (common < path.size() && common < piece.size() &&
           nodes_[path[common]].byte == static_cast<std::uint8_t>(piece[common]))
      ++common;
    for (std::size_t i = common; i < path.size(); ++i)
      nodes_[path[i]].end = static_cast<std::uint32_t>(nodes_.size());
    path.resize(common);
    for (std::size_t i = common; i < piece.size(); ++i) {
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back(
          {0, -1, static_cast<std::uint8_t>(piece[i]), static_cast<std::uint8_t>(i + 1), false});
    }
    nodes_[path.back()].token = last = id;
    longest_ = std::max(longest_, static_cast<std::uint32_t>(piece.size()));
  }
  const auto size = static_cast<std::uint32_t>(nodes_.size());
  for (std::uint32_t node : path) nodes_[node].end = size;
  large_ = std::max<std::uint32_t>(512, size / 8);
}

}  // namespace vitrine::grammar
