#include "sampling/history.h"

#include <algorithm>
#include <bit>

namespace vitrine {
namespace {

constexpr std::int32_t kEmpty = -1;

std::size_t entry_capacity(std::size_t prompt, std::size_t max_output, std::size_t vocab) {
  return prompt >= vocab ? vocab : prompt + std::min(max_output, vocab - prompt);
}

// At most half full, so that probes are short and always end.
std::size_t slot_count(std::size_t capacity) { return std::bit_ceil(2 * capacity + 1); }

}  // namespace

SamplerState::SamplerState(std::span<const std::int32_t> prompt, std::size_t max_output,
                           std::size_t vocab, Tracks tracks) {
  if (tracks.tokens) {
    prompt_ = prompt.size();
    most_tokens_ = prompt_ + max_output;
    tokens_.reserve(most_tokens_);
    tokens_.assign(prompt.begin(), prompt.end());
  }
  if (!tracks.counts) return;
  vocab_ = vocab;
  capacity_ = entry_capacity(prompt.size(), max_output, vocab);
  slots_.assign(slot_count(capacity_), kEmpty);
  entries_.reserve(capacity_);
  for (const std::int32_t id : prompt) add(id, 0);
}

void SamplerState::accept(std::int32_t token) {
  if (tokens_.size() < most_tokens_) tokens_.push_back(token);
  add(token, 1);
}

void SamplerState::add(std::int32_t id, std::uint32_t count) {
  if (id < 0 || static_cast<std::size_t>(id) >= vocab_) return;
  const std::size_t slot = slot_of(id);
  if (slots_[slot] != kEmpty) {
    entries_[slots_[slot]].output_count += count;
  } else if (entries_.size() < capacity_) {
    slots_[slot] = static_cast<std::int32_t>(entries_.size());
    entries_.push_back({id, count});
  }
}

const SamplerState::Entry* SamplerState::find(std::int32_t id) const {
  if (slots_.empty()) return nullptr;
  const std::int32_t index = slots_[slot_of(id)];
  return index == kEmpty ? nullptr : &entries_[index];
}

std::size_t SamplerState::slot_of(std::int32_t id) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot =
      (static_cast<std::uint32_t>(id) * std::uint64_t{0x9E3779B97F4A7C15} >> 32) & mask;
  while (slots_[slot] != kEmpty && entries_[slots_[slot]].id != id) slot = (slot + 1) & mask;
  return slot;
}

}  // namespace vitrine
