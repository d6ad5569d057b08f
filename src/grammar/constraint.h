// Constraints on an answer's text: what callers see of this folder.
//
// A ConstraintSpec says what the text must be. ConstraintCompiler (compiler.h) turns it into a
// Constraint, which is immutable and shared by all answers under it; that takes up to a second of a
// worker's time and is bounded in time and memory whatever the spec says. Each answer has a
// ConstraintMatcher, which tells which tokens may come next and advances by the token that was
// drawn.
//
//   auto compiler = std::make_shared<ConstraintCompiler>(pieces);
//   Result<std::shared_ptr<const Constraint>> c = compiler->compile({.kind = ..., .text = ...});
//   ConstraintMatcher matcher(*c);
//   matcher.mask() -> bits of tokens; matcher.accept(token); matcher.may_end() -> EOS may be drawn
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/masks.h"

namespace vitrine {

// Immutable, except for caches with their own lock.
class Constraint {
 public:
  // `spelled`: special tokens that stand for their text.
  Constraint(grammar::Machine machine, std::shared_ptr<const grammar::TokenTrie> trie,
             std::shared_ptr<grammar::MaskStore> store,
             std::vector<std::pair<std::int32_t, std::string>> spelled);

  const grammar::Machine& machine() const { return machine_; }
  const grammar::TokenTrie& trie() const { return *trie_; }
  grammar::Masks& masks() const { return masks_; }
  const std::vector<std::pair<std::int32_t, std::string>>& spelled() const { return spelled_; }
  std::size_t bytes() const { return sizeof(*this) + machine_.bytes(); }

 private:
  grammar::Machine machine_;
  std::shared_ptr<const grammar::TokenTrie> trie_;
  std::vector<std::pair<std::int32_t, std::string>> spelled_;
  mutable grammar::Masks masks_;
};

// The state of one answer. Copies are independent. Not thread-safe.
class ConstraintMatcher {
 public:
  explicit ConstraintMatcher(std::shared_ptr<const Constraint> constraint);

  // Tokens that may come next, by id; ids past its end are not allowed. Valid as long as the
  // pointer is held.
  std::shared_ptr<const grammar::TokenMask> mask();
  // Whether the text may end here.
  bool may_end() const { return ended_; }
  // False: the token may not come here, and nothing has changed.
  bool accept(std::int32_t token);
  // The same for bytes.
  bool accept_text(std::string_view text);

 private:
  // The stacks from which a special token may continue: inside a string a marker is not allowed.
  std::vector<grammar::Config> in_framing() const;
  bool accept_from(std::vector<grammar::Config> from, std::string_view text);
  // Advances `now` by the text; false when the text is not allowed.
  bool follow(std::string_view text, std::vector<grammar::Config>& now, bool& ended,
              bool& overflowed);
  void compact();

  std::shared_ptr<const Constraint> constraint_;
  grammar::Frames frames_;
  std::vector<grammar::Config> configs_;
  bool ended_ = false;
};

}  // namespace vitrine
