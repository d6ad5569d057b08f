// Speculative decoding: which guesses the sequences that decode carry into the next step, and what became of
// them. The guesses are made by sources (draft/source.h); how many are worth computing is decided by a policy
// (draft/policy.h) from what steps have taken so far.
//
// A guess never changes a token. The row of a guessed token is computed beside the last known one, every token
// is drawn as it would have been without, and the first that is not the guess ends the sequence's draws
// (scorer.h). So what is decided here changes how long a step takes, and nothing else.
//
// Sources look at tokens that the host knows, so a sequence with guesses has nothing in flight. Where steps are
// committed late (EngineOptions::commit_delay) that is no matter of course: sources guess behind the step in flight
// too, and where that is promising the engine is asked to commit all before it plans again (settles()), as long as
// there are guesses worth their rows. All sequences together: half of them in a step would read all weights for it.
// What the device waits for meanwhile is part of what such steps cost, and so of the decision.
//
// Engine thread only, under the engine's books lock. Nothing allocates after construction.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "draft/ngram.h"
#include "draft/policy.h"
#include "draft/suffix.h"
#include "engine/batch.h"
#include "engine/options.h"
#include "engine/step_record.h"

namespace vitrine {

class Speculator {
 public:
  // For the sequences in the first slots, kMostSeats at most: with more at once a step is bound by its rows, and
  // guesses win nothing.
  Speculator(const EngineOptions& options, int sequences);
  static constexpr int kMostSeats = 64;
  // Of the host's memory, at most about options.spec_mib.
  std::int64_t bytes() const;
  bool on() const { return !seats_.empty(); }

  // The sequence has got its slot; it has ended and has its slot still.
  void begin(const Sequence& s);
  void ended(const Sequence& s);
  // Fills in Sequence::draft. `shape`: the next step without guesses. Returns how long it took, in ns.
  std::int64_t propose(std::span<const std::unique_ptr<Sequence>> running, StepShape shape);
  // The last propose() wants its step committed before the next one is planned.
  bool settles() const { return settles_; }
  // The batch's tokens have been appended. Fills in what the record says of guesses.
  void observe(const Batch& batch, StepRecord& record);

 private:
  struct Seat {
    std::uint64_t sequence = 0;  // whose text the source knows; 0: none
    int learned = 0;             // tokens of it
    std::unique_ptr<DraftSource> source;
    std::vector<Guess> guesses;  // the last ones
  };
  Seat* seat_of(const Sequence& s);
  static bool ready(const Sequence& s);
  bool learn(const Sequence& s, Seat& seat);
  int guess(const Sequence& s, Seat& seat);

  const int most_;     // guesses for a sequence and step
  const bool always_;  // whatever they cost (tests)
  const bool late_;    // steps are committed late
  bool settles_ = false;
  std::unique_ptr<SharedSuffixes> shared_;
  std::vector<Seat> seats_;  // by slot
  std::unique_ptr<DraftPolicy> policy_;
  std::vector<DraftCandidate> candidates_;
  std::vector<Sequence*> drafting_;  // whose they are
  std::vector<VerifiedDraft> verified_;
};

}  // namespace vitrine
