#include "draft/suffix.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vitrine {
namespace {

constexpr std::size_t kHeader = std::tuple_size_v<SuffixScope> + 1;  // of an output that waits
// The part of the shared memory in which outputs wait.
constexpr std::size_t kWaitingPart = 16, kLeastWaiting = 256;
static_assert(SharedSuffixes::kLeastBytes ==
              SuffixHistory::kLeastBytes + kLeastWaiting * sizeof(std::int32_t));

// Guesses of a second kind take the place of the first only if they are better.
template <typename Draft>
SuffixDraft better(const SuffixDraft& first, std::span<Guess> out, const Draft& draft) {
  std::array<Guess, SuffixTree::kDepth> guesses;
  const std::size_t most = std::min(out.size(), guesses.size());
  const SuffixDraft second = draft(std::span(guesses).first(most));
  if (second.score <= first.score) return first;
  std::copy_n(guesses.begin(), second.count, out.begin());
  return second;
}

}  // namespace

// ---- SuffixHistory

void SuffixHistory::clear() {
  young_.clear();
  old_.clear();
}

void SuffixHistory::turn() {
  std::swap(young_, old_);
  young_.clear();
}

void SuffixHistory::open(const SuffixScope& scope) {
  if (young_.full()) turn();
  scope_ = scope;
  young_.open(scope);
}

// What stands on both sides of a turn is in neither tree.
void SuffixHistory::add(std::int32_t token) {
  if (young_.full()) {
    young_.close();
    turn();
    young_.open(scope_);
  }
  young_.add(token);
}

SuffixDraft SuffixHistory::draft(const SuffixScope& scope, std::span<const std::int32_t> context,
                                 const SuffixLimits& limits, std::span<Guess> out) const {
  return better(young_.draft(scope, context, limits, out), out, [&](std::span<Guess> guesses) {
    return old_.draft(scope, context, limits, guesses);
  });
}

// ---- SharedSuffixes

SharedSuffixes::SharedSuffixes(std::size_t bytes)
    : history_(bytes - bytes / kWaitingPart),
      waiting_(std::max(kLeastWaiting, bytes / kWaitingPart / sizeof(std::int32_t))) {}

void SharedSuffixes::put(std::int32_t word) {
  waiting_[(first_ + held_++) % waiting_.size()] = word;
}

std::int32_t SharedSuffixes::take() {
  const std::int32_t word = waiting_[first_];
  first_ = (first_ + 1) % waiting_.size();
  --held_;
  return word;
}

void SharedSuffixes::add(const SuffixScope& scope, std::span<const std::int32_t> output) {
  if (output.empty()) return;
  const std::size_t room = waiting_.size() - held_;
  // One output must not take the room of all others.
  const std::size_t size = std::min(output.size(), waiting_.size() / 2);
  if (room < kHeader + size) {
    ++dropped_;
    return;
  }
  for (const std::int32_t word : scope) put(word);
  put(static_cast<std::int32_t>(size));
  for (const std::int32_t token : output.last(size)) put(token);
}

bool SharedSuffixes::learn(int tokens) {
  for (; tokens > 0 && held_ > 0; --tokens) {
    if (open_ < 0) {
      SuffixScope scope;
      for (std::int32_t& word : scope) word = take();
      open_ = take();
      history_.open(scope);
    }
    history_.add(take());
    if (--open_ > 0) continue;
    history_.close();
    open_ = -1;
  }
  return held_ > 0;
}

// ---- SuffixSource

void SuffixSource::begin(std::string_view scope) {
  scope_ = suffix_scope(scope);
  known_ = 0;
  local_.clear();
  local_.open(scope_);
}

void SuffixSource::extend(std::span<const std::int32_t> tokens) {
  for (; known_ < tokens.size(); ++known_) local_.add(tokens[known_]);
}

int SuffixSource::draft(std::span<const std::int32_t> tokens, std::span<Guess> out) {
  extend(tokens);
  SuffixDraft best = local_.draft(scope_, tokens, options_.limits, out);
  if (shared_ != nullptr)
    best = better(best, out, [&](std::span<Guess> guesses) {
      return shared_->draft(scope_, tokens, options_.limits, guesses);
    });
  return best.count;
}

void SuffixSource::finish(std::span<const std::int32_t> output) {
  if (shared_ != nullptr) shared_->add(scope_, output);
}

}  // namespace vitrine
