#include "draft/ngram.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/keyed_hash.h"

namespace vitrine {
namespace {

// From its last token to its first, so that the hash of n + 1 tokens begins with that of n. Whoever
// writes the prompt must not be able to choose n-grams that meet in the table: hence the secret.
std::uint64_t lengthen(std::uint64_t hash, std::int32_t token) {
  return keyed_mix(hash + 1, static_cast<std::uint32_t>(token));
}

std::uint64_t hash_of(std::span<const std::int32_t> text, int end, int n) {
  std::uint64_t hash = 0;
  for (int i = 1; i <= n; ++i) hash = lengthen(hash, text[end - i]);
  return hash;
}

}  // namespace

NgramIndex::NgramIndex(int n, int capacity)
    : n_(n), ends_(std::bit_ceil(static_cast<std::size_t>(capacity) * 2 + 1), -1) {}

void NgramIndex::clear() { std::fill(ends_.begin(), ends_.end(), -1); }

// Its place in the table, or the empty one where it would go.
std::size_t NgramIndex::locate(std::span<const std::int32_t> text, int end,
                               std::uint64_t hash) const {
  const auto ngram = text.subspan(end - n_, n_);
  const std::size_t mask = ends_.size() - 1;
  std::size_t i = hash & mask;
  while (ends_[i] >= 0 && !std::ranges::equal(text.subspan(ends_[i] - n_, n_), ngram))
    i = (i + 1) & mask;
  return i;
}

int NgramIndex::find(std::span<const std::int32_t> text, int end, std::uint64_t hash) const {
  return ends_[locate(text, end, hash)];
}

void NgramIndex::put(std::span<const std::int32_t> text, int end, std::uint64_t hash) {
  ends_[locate(text, end, hash)] = end;
}

// Later entries of the probe sequence move back into the gap, or probing would stop before them.
void NgramIndex::erase(std::span<const std::int32_t> text, int end) {
  std::size_t gap = locate(text, end, hash_of(text, end, n_));
  if (ends_[gap] != end) return;
  const std::size_t mask = ends_.size() - 1;
  for (std::size_t i = (gap + 1) & mask; ends_[i] >= 0; i = (i + 1) & mask) {
    const std::size_t home = hash_of(text, ends_[i], n_) & mask;
    if (((i - home) & mask) < ((i - gap) & mask)) continue;
    ends_[gap] = ends_[i];
    gap = i;
  }
  ends_[gap] = -1;
}

NgramSource::NgramSource(const NgramOptions& options) : options_(options) {
  VT_CHECK(options.min_n >= 1 && options.max_n >= options.min_n && options.window >= 1,
           "n-grams of {} to {} tokens, {} back", options.min_n, options.max_n, options.window);
  for (int n = options.min_n; n <= options.max_n; ++n) indexes_.emplace_back(n, options.window + 1);
}

std::size_t NgramSource::bytes() const {
  std::size_t bytes = 0;
  for (const NgramIndex& index : indexes_) bytes += index.bytes();
  return bytes;
}

void NgramSource::begin(std::string_view) {
  known_ = 0;
  for (NgramIndex& index : indexes_) index.clear();
}

// An n-gram is put once a token follows it: the end of the text must not find itself.
void NgramSource::extend(std::span<const std::int32_t> tokens) {
  const int size = static_cast<int>(tokens.size());
  for (int end = std::max(known_, 1); end < size; ++end) {
    std::uint64_t hash = 0;
    for (int n = 1; n <= std::min(options_.max_n, end); ++n) {
      hash = lengthen(hash, tokens[end - n]);
      if (n < options_.min_n) continue;
      NgramIndex& index = indexes_[n - options_.min_n];
      index.put(tokens, end, hash);
      if (end - options_.window >= n) index.erase(tokens, end - options_.window);
    }
  }
  known_ = std::max(known_, size);
}

int NgramSource::draft(std::span<const std::int32_t> tokens, std::span<Guess> out) {
  extend(tokens);
  const int size = static_cast<int>(tokens.size());
  for (int n = std::min(options_.max_n, size); n >= options_.min_n; --n) {
    const int at = indexes_[n - options_.min_n].find(tokens, size, hash_of(tokens, size, n));
    if (at < 0) continue;
    // A rough estimate: the longer the match the surer. The policy measures how far it is off.
    const float sure = static_cast<float>(n) / static_cast<float>(n + 1);
    float probability = 1;
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = {tokens[at + static_cast<int>(i) % (size - at)], probability *= sure};
    return static_cast<int>(out.size());
  }
  return 0;
}

}  // namespace vitrine
