// The tokens of a vocabulary as a tree of their bytes, laid out in the order of a walk.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace vitrine::grammar {

struct TrieNode {
  std::uint32_t end;   // index after the last node below this one
  std::int32_t token;  // that ends here; -1: none
  std::uint8_t byte;
  std::uint8_t depth;  // 1: the first byte
  bool shared;         // other tokens have the same bytes
};

// The nodes below one, or all.
struct Subtree {
  std::uint32_t begin, end;
  std::uint8_t depth;  // of the node they are below; 0: all
};

// One bit per token, in the form that drawing takes.
struct TokenMask {
  std::vector<std::uint64_t> words;
  bool any = false;

  void set(std::int32_t id) { words[id / 64] |= std::uint64_t{1} << id % 64, any = true; }
  bool test(std::int32_t id) const { return words[id / 64] >> id % 64 & 1; }
  std::size_t bytes() const { return sizeof(*this) + words.size() * 8; }
};

// Immutable; any number of threads may use it.
class TokenTrie {
 public:
  // The bytes of each token by id. An empty one, or one of more than 255 bytes, can never be part
  // of a constrained text: special tokens are given as empty.
  explicit TokenTrie(std::vector<std::string> pieces);

  std::span<const TrieNode> nodes() const { return nodes_; }
  Subtree whole() const { return {0, static_cast<std::uint32_t>(nodes_.size()), 0}; }
  Subtree below(std::uint32_t node) const {
    return {node + 1, nodes_[node].end, nodes_[node].depth};
  }
  // Larger subtrees get cached masks of their own; there are few of them.
  std::uint32_t large() const { return large_; }
  std::int32_t vocab() const { return static_cast<std::int32_t>(pieces_.size()); }
  const std::string& piece(std::int32_t token) const { return pieces_[token]; }
  std::uint32_t longest() const { return longest_; }
  TokenMask empty_mask() const { return {std::vector<std::uint64_t>((pieces_.size() + 63) / 64)}; }
  // Marks the token and all that have the same bytes.
  void mark(std::int32_t token, TokenMask& mask) const {
    for (; token >= 0; token = same_[token]) mask.set(token);
  }
  void mark(const TrieNode& node, TokenMask& mask) const {
    if (node.shared) return mark(node.token, mask);
    mask.set(node.token);
  }
  void unmark(std::int32_t token, TokenMask& mask) const {
    for (; token >= 0; token = same_[token])
      mask.words[token / 64] &= ~(std::uint64_t{1} << token % 64);
  }

 private:
  std::vector<std::string> pieces_;
  std::vector<std::int32_t> same_;  // the next token with the same bytes
  std::vector<TrieNode> nodes_;
  std::uint32_t longest_ = 0, large_ = 0;
};

}  // namespace vitrine::grammar
