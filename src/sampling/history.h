// What samplers know of a sequence's tokens: which occur in its prompt or output, and how often in
// the output. Size is proportional to the distinct tokens; nothing allocates after construction.
// Owned by one sequence, used by the engine's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vitrine {

class SamplerState {
 public:
  struct Entry {
    std::int32_t id;
    std::uint32_t output_count;  // 0: in the prompt only
  };

  // Tracks nothing: enough for a chain that does not use history.
  SamplerState() = default;
  // Room for `max_output` accepted tokens after `prompt`. Ids outside [0, vocab) are ignored.
  SamplerState(std::span<const std::int32_t> prompt, std::size_t max_output, std::size_t vocab);

  // Counts an output token. After `max_output` tokens, tokens not seen before are not added.
  void accept(std::int32_t token);

  std::span<const Entry> entries() const { return entries_; }
  const Entry* find(std::int32_t id) const;  // null when not seen

 private:
  std::size_t slot_of(std::int32_t id) const;
  void add(std::int32_t id, std::uint32_t count);

  std::size_t vocab_ = 0;
  std::size_t capacity_ = 0;
  std::vector<Entry> entries_;       // in order of first occurrence
  std::vector<std::int32_t> slots_;  // open addressing: index into entries_, or -1
};

}  // namespace vitrine
