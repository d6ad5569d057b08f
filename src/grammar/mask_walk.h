// One walk of a token tree through a machine: marks the tokens that may come next.
//
// The machine is determinised on the way: a node is a step from one set of configurations by one
// byte to another, and most nodes repeat one that was taken before. Frames of known sets are kept
// until the end of the walk; when there are too many sets, those off the path are forgotten.
//
// A very ambiguous grammar would delay other requests. After kMaxWork steps of single
// configurations, only tokens of one byte are still looked for: the text stays inside the grammar,
// and every text of the grammar can still be written.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/outside_map.h"
#include "grammar/follow.h"
#include "grammar/matcher.h"
#include "grammar/token_trie.h"

namespace vitrine::grammar {

// A token inside a counted string, or one that leaves a rule, and how many characters of the string
// it has.
struct CountedToken {
  std::int32_t token;
  std::uint8_t characters;
};

// What is known about the tokens of a subtree from a wide state and its top frame alone.
struct WideMask {
  TokenMask inside;  // tokens that are allowed whatever the rest of the stack is
  // In a counted string: the tokens of `inside`, most characters first. The current count is
  // ignored, so that one mask serves all counts.
  std::vector<CountedToken> counted;
  // The parts of tokens after the end of the rule (endings), each once, and the tokens of each
  // ending.
  std::unique_ptr<TokenTrie> endings;
  std::vector<std::vector<CountedToken>> by_ending;
  bool whole = false;  // nothing of this is used: the state is walked like a narrow one

  std::size_t bytes() const;
};

class Walk {
 public:
  Walk(const Machine& machine, const TokenTrie& trie, Frames& frames, TokenMask& mask)
      : trie_(trie), machine_(machine), frames_(frames), stepper_(machine, frames), mask_(mask) {}

  // Called with the configurations above a large subtree: marks what some of them allow in it, and
  // removes those.
  std::function<void(std::vector<Config>&, Subtree)> on_large;

  // Instead of a plain walk: gathers into `wide` what can be decided without the stack below
  // Frames::kEscape. `after`: the bytes that may follow there.
  void classify(WideMask& wide, bool counted, const ByteSet& after);

  // Restores the frames.
  void run(std::span<const Config> from, Subtree below);

 private:
  struct Set {
    std::vector<Config> configs;
    bool escaped = false;
  };
  using SetId = std::int32_t;
  static constexpr SetId kUnknown = -1, kNowhere = -2;
  static constexpr std::size_t kMaxSets = 2048;
  static constexpr std::size_t kMaxWork = 1 << 18;  // about 15 ms
  struct Escape {
    std::uint32_t end;        // of the nodes below
    std::uint8_t depth;       // after so many bytes
    std::uint8_t characters;  // of a counted string
  };

  SetId& next(SetId set, std::uint8_t byte) {
    return next_[static_cast<std::size_t>(set) * machine_.classes() + machine_.class_of(byte)];
  }
  SetId step(std::size_t depth, std::uint8_t byte);
  SetId find_set(std::span<const Config> configs, bool escaped);
  void forget(std::size_t depth, std::span<const Config> also);
  SetId hand_over(SetId set, Subtree below);

  void classify(std::uint32_t index, const Set& here);
  void gather(std::uint32_t top);
  void add(std::string_view ending, CountedToken token);
  // A plain walk is cheaper.
  bool too_much() const {
    return wide_ != nullptr && (gathered_ >= kMaxGathered || work_ > kMaxWork);
  }
  void finish();

  const TokenTrie& trie_;
  const Machine& machine_;
  Frames& frames_;
  Stepper stepper_;
  TokenMask& mask_;
  std::size_t own_frames_ = 0;  // frames from here on are the walk's
  std::size_t top_ = 0;         // depth above the subtree
  std::size_t work_ = 0;
  std::array<char, 256> path_{};
  std::array<SetId, 257> path_sets_{};
  std::vector<Set> sets_;
  std::vector<SetId> next_;  // by set and class of bytes
  std::unordered_multimap<std::uint64_t, SetId> ids_of_sets_;

  WideMask* wide_ = nullptr;
  bool counted_ = false;         // counts are recorded, limits are not applied
  ByteSet after_;                // what may come after the rule
  std::vector<Escape> escapes_;  // on the path
  std::vector<Escape> left_;     // those that may be before the byte after them
  // A rule that may end anywhere, followed by anything, has so many endings that a walk is cheaper.
  static constexpr std::size_t kMaxGathered = 16384;
  std::size_t gathered_ = 0;                  // tokens by their endings
  OutsideMap<std::string, std::size_t> ids_;  // of endings
};

}  // namespace vitrine::grammar
