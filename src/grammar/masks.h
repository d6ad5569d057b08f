// Which tokens may come next: a walk of the token tree through the automaton, and what makes it
// cheap.
//
// 1. Masks are kept by the state they belong to. States whose counters are far from their limits
//    share one.
// 2. For a wide state (the inside of a string, a name), most tokens are decided by the state and
// its
//    own frame alone: they stay inside, or die inside. Those are found once per such state; of the
//    others, which leave the rule on the way, what comes after that is kept: the different endings
//    (there are few: `",` or `"}`) in a tree of their own, each with its tokens. Only that is
//    walked when the stack differs.
// 3. The same for wide states that a walk comes to above a large part of the tree: half of all
//    tokens begin with a blank.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "grammar/mask_walk.h"

namespace vitrine::grammar {

// Masks of all constraints, least recently used out first: up to 64 MiB of either kind.
struct MaskStore;
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
  // What wide states allow of a subtree; they are taken out of `configs`.
  void add_wide(std::vector<Config>& configs, Subtree below, Frames& frames, TokenMask& mask);
  // The same for some that `part` is about.
  void add_part(const WideMask& part, std::span<const Config> configs, Frames& frames,
                TokenMask& mask);
  // Tokens that leave the rule with that many characters and go on as its callers do.
  void add_endings(const WideMask& wide, std::span<const Config> configs, const Counter& characters,
                   Frames& frames, TokenMask& mask);
  std::shared_ptr<const WideMask> wide(const Config& c, Subtree below, Frames& frames);

  const Machine& machine_;
  const TokenTrie& trie_;
  std::shared_ptr<MaskStore> store_;
  std::vector<ByteSet> after_;  // by rule
  std::uint64_t salt_;          // tells this machine's keys from others'
};

}  // namespace vitrine::grammar
