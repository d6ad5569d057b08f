// Added tokens: strings that are cut out of the text before normalization and splitting.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/hash.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab.h"

namespace vitrine {

struct AddedToken {
  std::int32_t id = kNoToken;
  std::string content;
  bool special = false;
  bool lstrip = false, rstrip = false;  // the match takes the white space on that side too
  bool single_word = false;             // matches only between non-word characters
  bool normalized = false;              // matched in the normalized text, not in the raw one
};

// Finds, at every place of a text, the longest of many strings that starts there. An Aho-Corasick
// automaton over the reversed strings reads the text backwards, so the time is linear whatever the
// strings are.
class PrefixFinder {
 public:
  explicit PrefixFinder(const std::vector<std::string>& patterns);
  struct Hit {
    std::size_t at;
    std::uint32_t pattern;
  };
  // Places in descending order.
  void find_all(std::string_view text, std::vector<Hit>& out) const;
  std::size_t length(std::uint32_t pattern) const { return lengths_[pattern]; }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  std::uint32_t step(std::uint32_t state, unsigned char byte) const;

  std::array<std::uint32_t, 256> root_;
  FlatMap<std::uint32_t> edges_;        // state << 8 | byte -> state
  std::vector<std::uint32_t> fail_;     // longest proper suffix that is a state
  std::vector<std::size_t> lengths_;    // of the patterns
  std::vector<std::uint32_t> longest_;  // longest pattern that is a suffix of the state, or kNone
};

class AddedTokens {
 public:
  void add(AddedToken token) { tokens_.push_back(std::move(token)); }
  const std::vector<AddedToken>& all() const { return tokens_; }
  // Builds the finders; call once, after the last add(). kTooLarge for more text than kMostBytes.
  Status build(const Normalizer& normalizer);
  static constexpr std::size_t kMostBytes = 4 << 20;

  struct Segment {
    std::string_view text;
    std::int32_t token = kNoToken;  // kNoToken: plain text
  };
  enum class Stage { kRaw, kNormalized };
  // Cuts `text` at the added tokens of a stage: leftmost, then longest. Special ones only if asked.
  void split(std::string_view text, Stage stage, bool special, std::vector<Segment>& out) const;
  // Like the raw stage, with the special tokens of both stages. A special token that would include
  // a byte of `words` (the caller's text) is not matched.
  void split_around(std::string_view text, std::span<const ByteSpan> words,
                    std::vector<Segment>& out) const;
  // Whether some special token would include a byte of `words`.
  bool spell_special(std::string_view text, std::span<const ByteSpan> words,
                     const Normalizer& normalizer) const;

 private:
  struct Group {
    std::vector<const AddedToken*> tokens;
    std::vector<PrefixFinder> finder;  // one, or none when there are no tokens
  };
  const Group& group(Stage stage, bool special) const {
    return groups_[(stage == Stage::kNormalized ? 2 : 0) + (special ? 1 : 0)];
  }

  // The segments of `text` for hits in ascending order.
  static void cut(std::string_view text, const Group& group,
                  const std::vector<PrefixFinder::Hit>& hits, std::vector<Segment>& out);

  std::vector<AddedToken> tokens_;
  std::array<Group, 4> groups_;
  Group special_;  // special ones of both stages, spelt as in the file, and the raw stage's others
  std::vector<std::uint32_t> plain_in_special_;  // where those others are in it
};

}  // namespace vitrine
