// Which tokens may come next: a walk of the token tree through the automaton, and three ways to
// make it cheap.
//
// - Masks are cached by state. States whose counters are far from their limits share a mask.
// - In a wide state (inside a string or a name) most tokens are decided by the state and its top
//   frame alone: they stay inside the rule, or are not allowed. These are computed once per state.
//   For tokens that leave the rule on their way, the rest of the token after that point (its
//   ending, such as `",` or `"}`) is kept in a small tree. Only that tree is walked when the stack
//   differs.
// - The same is done for wide states that a walk reaches above a large subtree: half of all tokens
//   begin with a space.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "grammar/mask_walk.h"

namespace vitrine::grammar {

// The cache of masks of all constraints (LRU): up to 64 MiB of masks and 64 MiB of wide states.
struct MaskStore;
inline constexpr std::size_t kMaskStoreBytes = std::size_t{128} << 20;  // at most
std::shared_ptr<MaskStore> make_mask_store();

// The masks of one machine over one vocabulary. Thread-safe.
class Masks {
 public:
  // Machine and tokens outlive this.
  Masks(const Machine& machine, const TokenTrie& trie, std::shared_ptr<MaskStore> store);

  // Computes wide states of the machine ahead of their use.
  void warm_up();
  // Tokens after which the text can still be completed. End tokens are up to the caller (may_end).
  // `frames` is used as scratch and restored.
  std::shared_ptr<const TokenMask> mask(std::span<const Config> configs, Frames& frames);

 private:
  std::uint64_t key_of(const Config& c, const Frames& frames) const;
  // Adds what the wide states of `configs` allow in a subtree, and removes them from `configs`.
  void add_wide(std::vector<Config>& configs, Subtree below, Frames& frames, TokenMask& mask);
  // The same for configurations in the wide state that `part` describes.
  void add_part(const WideMask& part, std::span<const Config> configs, Frames& frames,
                TokenMask& mask);
  // Adds tokens that leave the rule after that many characters and continue in its callers.
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
