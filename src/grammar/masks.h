// Which tokens may come next: a walk of the token tree through the automaton, and what makes it
// cheap.
//
// 1. Masks are kept by the state they belong to. States whose counters are far from their limits
//    share one.
// 2. For a wide state (the inside of a string), most tokens are decided by the state and its own
//    frame alone: they stay inside, or die inside. Those are found once per such state; of the
//    others, which leave the rule on the way, what comes after that is kept: the different endings
//    (there are few: `",` or `"}`) in a tree of their own, each with its tokens. Only that is
//    walked when the stack differs.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "grammar/matcher.h"
#include "grammar/token_trie.h"

namespace vitrine::grammar {

// Masks of all constraints, least recently used out first: up to 64 MiB of either kind.
struct MaskStore;
struct WideMask;
std::shared_ptr<MaskStore> make_mask_store();

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
  std::uint64_t key_of(const Config& c, const Frames& frames) const;
  // False: the state has to be walked like a narrow one.
  bool add_wide(const Config& c, Frames& frames, TokenMask& mask);
  // Tokens that leave the rule of `c` with that many characters and go on as its caller does.
  void add_endings(const WideMask& wide, const Config& c, const Counter& characters, Frames& frames,
                   TokenMask& mask);
  std::shared_ptr<const WideMask> wide(const Config& c, Frames& frames);

  const Machine& machine_;
  const TokenTrie& trie_;
  std::shared_ptr<MaskStore> store_;
  std::uint64_t salt_;  // tells this machine's keys from others'
};

}  // namespace vitrine::grammar
