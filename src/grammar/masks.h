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

// The masks of one machine over one vocabulary. Thread-safe.
class Masks {
 public:
  static constexpr std::size_t kMaskBytes = 16 << 20, kWideBytes = 16 << 20;

  // Both outlive this.
  Masks(const Machine& machine, const TokenTrie& trie);

  // Works out the wide states of the machine, as far as there is room for them.
  void warm_up();
  // Tokens that keep the text possible; those that end it are not the machine's business.
  // `frames` is used as scratch and left as it was.
  std::shared_ptr<const TokenMask> mask(std::span<const Config> configs, Frames& frames);

 private:
  struct Wide {
    TokenMask inside;             // whatever is under the state
    std::vector<TrieNode> other;  // tokens that it depends on
  };
  class Walk;

  std::uint64_t key_of(const Config& c, const Frames& frames) const;
  std::shared_ptr<const Wide> wide(const Config& c, Frames& frames);

  const Machine& machine_;
  const TokenTrie& trie_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  Lru<TokenMask> masks_;
  Lru<Wide> wides_;
};

}  // namespace vitrine::grammar
