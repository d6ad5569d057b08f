// Guesses that are right as often as one says, to measure what speculation takes and wins whatever the text: the
// text is known beforehand, from a run without guesses. For benchmarks and tests; nobody can serve with it.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "draft/source.h"

namespace vitrine {

// Whole texts, prompt and output, by the scope of their sequences. For all threads.
class KnownTexts {
 public:
  void set(const std::string& scope, std::vector<std::int32_t> tokens);
  std::vector<std::int32_t> of(std::string_view scope) const;  // empty: not known
  void clear();

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<std::int32_t>, std::less<>> texts_;
};

// Says of each place what the known text has there, or, by a coin, another token. The coin depends on scope and
// place, so it does not matter how often a place is guessed. A text that has left the known one is guessed as before.
class SimulatedSource : public DraftSource {
 public:
  // `right`: the chance of each guess, 0 to 1. `texts` must outlive it.
  SimulatedSource(const KnownTexts& texts, double right) : texts_(texts), right_(right) {}

  void begin(std::string_view scope) override;
  void extend(std::span<const std::int32_t>) override {}
  int draft(std::span<const std::int32_t> tokens, std::span<Guess> out) override;
  std::size_t bytes() const override { return text_.capacity() * sizeof(std::int32_t); }

 private:
  bool right_at(std::size_t place) const;

  const KnownTexts& texts_;
  const double right_;
  std::uint64_t coins_ = 0;
  std::vector<std::int32_t> text_;
};

}  // namespace vitrine
