// Suffix decoding (Oliaro et al., arXiv 2411.04975): guesses are what most often followed the longest
// stretches that the end of the sequence shares with what was written before: with its own prompt and
// output, and with the outputs of earlier sequences of the same scope. Agents and pipelines write much
// that they have written before; prompt lookup (draft/ngram.h) sees only the sequence itself and does
// not know how sure it is.
#pragma once

#include "draft/suffix_tree.h"

namespace vitrine {

// The latest texts, as many as fit into a fixed memory. There are two trees: when the younger is full,
// the older is cleared and becomes the younger. So between a half and all of the memory is in use, the
// oldest texts go first, and forgetting takes no time.
class SuffixHistory {
 public:
  // With at most this much memory, but never less than kLeastBytes.
  explicit SuffixHistory(std::size_t bytes) : young_(bytes / 2), old_(bytes / 2) {}
  static constexpr std::size_t kLeastBytes = 2 * SuffixTree::kLeastBytes;
  std::size_t bytes() const { return young_.bytes() + old_.bytes(); }
  void clear();

  // As in SuffixTree.
  void open(const SuffixScope& scope);
  void add(std::int32_t token);
  void close() { young_.close(); }
  // The better of both trees' guesses; of equals the younger's.
  SuffixDraft draft(const SuffixScope& scope, std::span<const std::int32_t> context,
                    const SuffixLimits& limits, std::span<Guess> out) const;
  std::uint64_t work() const { return young_.work() + old_.work(); }

 private:
  void turn();

  SuffixScope scope_{};  // of the open text
  SuffixTree young_, old_;
};

// What the outputs of ended sequences teach those that come later. One for an engine; on its thread.
class SharedSuffixes {
 public:
  // With at most this much memory, but never less than kLeastBytes.
  explicit SharedSuffixes(std::size_t bytes);
  static constexpr std::size_t kLeastBytes = SuffixHistory::kLeastBytes + 1024;
  std::size_t bytes() const {
    return history_.bytes() + waiting_.capacity() * sizeof(std::int32_t);
  }

  // An output waits to be learned; of a very long one, its end. It is dropped when too many wait.
  void add(const SuffixScope& scope, std::span<const std::int32_t> output);
  // Learns up to so many tokens of those that wait: a little beside each step, so that the end of a
  // long output holds up nobody. False: none wait.
  bool learn(int tokens);
  SuffixDraft draft(const SuffixScope& scope, std::span<const std::int32_t> context,
                    const SuffixLimits& limits, std::span<Guess> out) const {
    return history_.draft(scope, context, limits, out);
  }
  std::uint64_t dropped() const { return dropped_; }

 private:
  void put(std::int32_t word);
  std::int32_t take();

  SuffixHistory history_;
  std::vector<std::int32_t> waiting_;  // a ring: scope, length, tokens; and so on
  std::size_t first_ = 0, held_ = 0;   // words of it
  int open_ = -1;  // tokens to come of the output that is being learned; -1: none
  std::uint64_t dropped_ = 0;
};

struct SuffixOptions {
  std::size_t local_bytes = 2 << 20;  // for a sequence: some 14,000 of its tokens at least
  SuffixLimits limits = {};
};

class SuffixSource : public DraftSource {
 public:
  // Without `shared` it knows the sequence itself only.
  SuffixSource(const SuffixOptions& options, SharedSuffixes* shared)
      : options_(options), shared_(shared), local_(options.local_bytes) {}
  std::size_t bytes() const override { return local_.bytes(); }

  void begin(std::string_view scope) override;
  void extend(std::span<const std::int32_t> tokens) override;
  // The better of the sequence's own and the shared guesses; of equals its own.
  int draft(std::span<const std::int32_t> tokens, std::span<Guess> out) override;
  void finish(std::span<const std::int32_t> output) override;

 private:
  SuffixOptions options_;
  SharedSuffixes* shared_;
  SuffixScope scope_{};
  SuffixHistory local_;
  std::size_t known_ = 0;  // tokens that have been learned
};

}  // namespace vitrine
