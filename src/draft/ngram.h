// Prompt lookup (Saxena, 2023): the last few tokens have occurred before in the same sequence; what
// followed them then is the guess for what follows now. It costs next to nothing and is right where a
// text is copied: edits of code, quotes, tables, answers about a document.
#pragma once

#include <vector>

#include "draft/source.h"

namespace vitrine {

struct NgramOptions {
  int min_n = 2, max_n = 4;  // tokens that must have occurred before; more are tried first
  int window = 1 << 15;      // how many tokens back an occurrence may be
};

// Where each n-gram of a text (n tokens in a row) was followed by something the last time. A hash
// table of places in the text: it compares the tokens there, so it finds nothing that is not so.
// Nothing allocates after construction.
class NgramIndex {
 public:
  // Room for `capacity` n-grams.
  NgramIndex(int n, int capacity);
  void clear();
  // The end of the n-gram of `text` that ends at `end` in its last occurrence that was put; -1: none.
  // `hash` is that of the n-gram.
  int find(std::span<const std::int32_t> text, int end, std::uint64_t hash) const;
  void put(std::span<const std::int32_t> text, int end, std::uint64_t hash);
  // Forgets the n-gram, unless it was put again after `end`.
  void erase(std::span<const std::int32_t> text, int end);
  std::size_t bytes() const { return ends_.size() * sizeof(std::int32_t); }

 private:
  std::size_t locate(std::span<const std::int32_t> text, int end, std::uint64_t hash) const;

  int n_;
  std::vector<std::int32_t> ends_;  // open addressing, linear probing; -1: empty
};

// Of the occurrences of the longest suffix, the most recent one is taken: a text goes on as it just
// did, with the names and numbers that an edit has changed since. (Others take the earliest, since
// there is more text after it; here the guesses go round when they reach the end of the text, as if
// they had been written already, so there is always enough.)
class NgramSource : public DraftSource {
 public:
  explicit NgramSource(const NgramOptions& options);
  void begin(std::string_view scope) override;
  void extend(std::span<const std::int32_t> tokens) override;
  int draft(std::span<const std::int32_t> tokens, std::span<Guess> out) override;
  std::size_t bytes() const override;

 private:
  NgramOptions options_;
  int known_ = 0;                    // tokens that have been learned
  std::vector<NgramIndex> indexes_;  // of min_n, min_n + 1, ... max_n tokens
};

}  // namespace vitrine
