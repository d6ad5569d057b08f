// Where guesses for a sequence's next tokens come from.
//
// Speculative decoding computes guessed tokens beside the last known one in a single step, and keeps
// those that the model would have drawn anyway. A guess costs a row when it is wrong and saves a step
// when it is right; it never changes a token. So a source may be as wrong as it likes, but it should
// know how sure it is: draft/policy.h decides by that how many guesses are worth their rows.
//
// A file of this folder is one kind of source. Sources that run a model (a draft model, EAGLE, MTP)
// belong to the engine, behind the same seam.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace vitrine {

struct Guess {
  std::int32_t token = -1;
  // That it is right, and all guesses before it. So it never rises along a draft.
  float probability = 0;
};

// The state of one sequence. An object lives as long as a seat of the engine: sequences follow each
// other in it, and all its memory is there from the start. Not for several threads at once.
class DraftSource {
 public:
  virtual ~DraftSource() = default;

  // A new sequence takes the object over. What sequences of one scope wrote may turn up in each
  // other's guesses, and how fast an answer comes tells of it; so a scope is what may see the same
  // cached pages (an API key and a cache_salt).
  virtual void begin(std::string_view scope) = 0;

  // Learns what is new in `tokens`: the whole sequence since begin(), prompt and committed output,
  // of which an earlier call has seen the beginning. O(1) amortised for a token, but a long prompt is
  // better learned chunk by chunk, beside the steps that compute it.
  virtual void extend(std::span<const std::int32_t> tokens) = 0;

  // Guesses what follows `tokens`, after learning what is new in them: at most out.size() guesses,
  // in their order. Returns how many. Bounded work, however long the sequence is.
  virtual int draft(std::span<const std::int32_t> tokens, std::span<Guess> out) = 0;

  // The sequence has ended with this output. Sources that learn from past outputs keep it.
  virtual void finish(std::span<const std::int32_t> output) { static_cast<void>(output); }

  virtual std::size_t bytes() const = 0;  // of memory that is its own
};

}  // namespace vitrine
