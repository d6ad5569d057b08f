// A source of guesses that runs a model: it guesses for all sequences together, because a pass over its
// weights serves them all. A draft model is one (draft_model.h); heads on the target's hidden states (EAGLE,
// MTP) would be others.
//
// Engine thread only, without the books lock: what it does takes as long as steps do. Nothing allocates after
// construction but masks of a constraint's new states, and copies of a matcher.
#pragma once

#include <span>

#include "draft/policy.h"
#include "engine/sequence.h"

namespace vitrine {

class ModelSource {
 public:
  // A sequence to guess for: at most guesses.size() tokens after all that it has.
  struct Wish {
    Sequence* sequence = nullptr;
    int left = 0;  // tokens that it may draw, as they were when planning began
    std::span<Guess> guesses;
    int count = 0;  // what draft() found
  };

  virtual ~ModelSource() = default;
  // The sequence has got its slot; it gives it back.
  virtual void begin(const Sequence& s) = 0;
  virtual void left(const Sequence& s) = 0;
  // Rows that must be computed before it can guess for the sequence; the last of them draws. -1: it cannot.
  virtual int behind(const Sequence& s) = 0;
  // Of those that are far behind, computes at most so many rows, of the first ones first; returns how many.
  virtual int catch_up(std::span<const Wish> wishes, int rows) = 0;
  // Guesses for all of them, a row of each at a time. Those that are far behind get none. Guesses whose
  // probability falls below `least` end a draft.
  virtual void draft(std::span<Wish> wishes, float least) = 0;
  // What passes of so many rows take; 0 while that is not known.
  virtual double pass_ns(int rows) const = 0;
  // Broken accounting of pages aborts the process.
  virtual void check_integrity() const = 0;
};

}  // namespace vitrine
