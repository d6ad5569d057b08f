// What samplers know of a sequence's tokens: which occur in its prompt or output, and how often in
// the output; if asked for, the tokens themselves. Nothing allocates after construction. Owned by one
// sequence, used by the engine's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vitrine {

// What a sampler with a state remembers (sampler.h).
struct SamplerMemory {
  double a = 0, b = 0;
};

class SamplerState {
 public:
  SamplerMemory memory;

  struct Entry {
    std::int32_t id;
    std::uint32_t output_count;  // 0: in the prompt only
  };

  struct Tracks {
    bool counts = true, tokens = false;
  };

  // Tracks nothing: enough for a chain that does not use history.
  SamplerState() = default;
  // Room for `max_output` accepted tokens after `prompt`. Counts ignore ids outside [0, vocab).
  SamplerState(std::span<const std::int32_t> prompt, std::size_t max_output, std::size_t vocab,
               Tracks tracks);
  SamplerState(std::span<const std::int32_t> prompt, std::size_t max_output, std::size_t vocab)
      : SamplerState(prompt, max_output, vocab, {.counts = true, .tokens = false}) {}

  // Counts an output token. After `max_output` tokens, tokens not seen before are not added.
  void accept(std::int32_t token);

  // Prompt and output; empty where tokens are not tracked.
  std::span<const std::int32_t> tokens() const { return tokens_; }
  std::span<const std::int32_t> output() const { return tokens().subspan(prompt_); }

  std::span<const Entry> entries() const { return entries_; }
  const Entry* find(std::int32_t id) const;  // null when not seen

 private:
  std::size_t slot_of(std::int32_t id) const;
  void add(std::int32_t id, std::uint32_t count);

  std::vector<std::int32_t> tokens_;
  std::size_t prompt_ = 0, most_tokens_ = 0;
  std::size_t vocab_ = 0;
  std::size_t capacity_ = 0;
  std::vector<Entry> entries_;       // in order of first occurrence
  std::vector<std::int32_t> slots_;  // open addressing: index into entries_, or -1
};

}  // namespace vitrine
