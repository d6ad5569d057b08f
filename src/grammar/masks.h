// Which tokens may come next: a walk of the token tree through the automaton, and what makes it
// cheap.
//
// 1. Masks are kept by the state they belong to. States whose counters are far from their limits
//    share one.
// 2. For a wide state (the inside of a string), most tokens are decided by the state and its own
//    frame alone: they stay inside, or die inside. Those are found once per such state; of the
//    others, whose fate depends on what is under it on the stack, a tree of their own is kept, and
//    only that is walked when the stack differs.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "grammar/lru.h"
#include "grammar/matcher.h"
#include "grammar/token_trie.h"

namespace vitrine::grammar {

// What is decided by a wide state and its own frame.
struct WideMask {
  TokenMask inside;             // tokens that may come whatever is under the state
  std::vector<TrieNode> other;  // tokens that it depends on
  // In a counted string: the tokens of `inside` with their characters, most characters first. The
  // count itself is not looked at, so that one mask serves all counts.
  std::vector<std::pair<std::uint8_t, std::int32_t>> characters;

  std::size_t bytes() const {
    return inside.bytes() + other.size() * sizeof(TrieNode) + characters.size() * 8;
  }
};

// Masks of all constraints, least recently used out first.
struct MaskStore {
  static constexpr std::size_t kBytes = std::size_t{64} << 20;  // of each kind

  std::mutex mutex;
  // Guarded by mutex.
  Lru<TokenMask> masks{kBytes};
  Lru<WideMask> wides{kBytes};
};

// The masks of one machine over one vocabulary. Thread-safe.
class Masks {
 public:
  // Machine and tokens outlive this.
  Masks(const Machine& machine, const TokenTrie& trie, std::shared_ptr<MaskStore> store);

  // Works out wide states of the machine ahead of their use.
  void warm_up();
  // Tokens that keep the text possible; those that end it are not the machine's business.
  // `frames` is used as scratch and left as it was.
  std::shared_ptr<const TokenMask> mask(std::span<const Config> configs, Frames& frames);

 private:
  class Walk;

  std::uint64_t key_of(const Config& c, const Frames& frames) const;
  void add_wide(const Config& c, Frames& frames, TokenMask& mask);
  std::shared_ptr<const WideMask> wide(const Config& c, Frames& frames);

  const Machine& machine_;
  const TokenTrie& trie_;
  std::shared_ptr<MaskStore> store_;
  std::uint64_t salt_;  // tells this machine's keys from others'
};

}  // namespace vitrine::grammar
