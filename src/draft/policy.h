// How many guesses a step computes, over all its sequences. Pure arithmetic: times and outcomes come in
// as arguments, the same ones give the same decisions.
//
// A step of R0 rows in which N sequences decode takes c(R0) and gives N tokens. With the m likeliest
// guesses it takes c(R0 + m), and gives a token more for each that is right: their probabilities are
// summed. A token is worth what it costs without guesses, c(N) / N. So m is taken where
//
//     (c(R0) + sum of the m probabilities * c(N) / N) / (c(R0 + m) + drafting)
//
// is greatest, if it is at least 1.05 times what it is at 0: drafting is spent by then. (Where a step only
// decodes, R0 = N, this is the ratio of tokens per second with and without.) It switches itself off under
// load: once c grows in proportion to the rows, a guess costs as much as the token it may save.
//
// Where drafting takes time (a draft model), depth() decides before it how many guesses to make, by the
// same rule with what drafting will take and with how often guesses at each place were right so far.
//
// What a step takes without guesses is what everything is held against, and changes (contexts, clocks, neighbours). So
// after 31 steps with guesses, and when a sequence begins, one takes none; where that took another time than was thought,
// more follow.
//
// A source's probabilities are corrected by what became of its guesses, for each sequence and place in
// the draft. The loss ledger (draft/loss_ledger.h) holds what is left to a bound: no step may lose more
// than it has room for, were all guesses wrong.
//
// The engine's loop, for each step:
//     if (policy.drafts()) let the sources draft for sequences that decode
//     policy.plan(shape, candidates)        and compute the first `take` guesses of each
//     policy.observe(shape, ns, verified)   when it is done, with or without guesses
// Nothing allocates after construction.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "draft/loss_ledger.h"
#include "draft/source.h"
#include "draft/step_cost.h"

namespace vitrine {

struct PolicyOptions {
  int seats = 1;                 // sequences at once
  int max_guesses = 8;           // for a sequence and step; more are not looked at
  int sources = 1;               // kinds of them
  std::vector<int> sizes = {1};  // of steps: see StepCost
};

// What drafting will take: so much for the first guess of all sequences, and for each further one.
struct DraftingCost {
  double first_ns = 0, next_ns = 0;
};

// A step as it would be without guesses.
struct StepShape {
  int rows = 0;            // all: of decoding and of prompts
  int decoding = 0;        // sequences that draw a token
  int room = 0;            // rows that guesses may take
  double drafting_ns = 0;  // what the sources took, if the step waited for them
  double kv_ns = 0;        // the part of its time that depends on contexts, not on rows, if known
  bool waited = false;     // the device stood still before it, for guesses to be made
};

struct DraftCandidate {
  int seat = 0;
  int source = 0;
  std::span<const Guess> guesses;
  int take = 0;  // plan() says how many of them to compute
};

struct VerifiedDraft {
  int seat = 0;
  int source = 0;
  std::span<const Guess> guesses;  // that were computed
  int accepted = 0;                // of these, those that were drawn
  bool ended = false;  // the sequence ended with the last of them: the next one was not tried
};

class DraftPolicy {
 public:
  explicit DraftPolicy(PolicyOptions options);

  void begin(int seat);  // a new sequence
  // Whether guesses would be used. Where not, making them is time lost.
  bool drafts() const { return cost_.known() && ledger_.on() && plain_left_ == 0; }
  // How many guesses to make for each of these sequences, of which seat and source are read. 0: none are
  // worth what they cost.
  int depth(const StepShape& shape, std::span<const DraftCandidate> candidates,
            const DraftingCost& drafting) const;
  // Whether so many rows more, after drafting that takes so long, may be lost.
  bool affords(const StepShape& shape, int rows, double drafting_ns) const;
  // Of so many guesses of a source, how many it can be expected to get right.
  double promise(int seat, int source, int count) const;
  // The same for guesses that are made.
  double promise(const DraftCandidate& candidate) const;
  // Fills in `take` and returns the sum.
  int plan(const StepShape& shape, std::span<DraftCandidate> candidates);
  // A step has taken `wall_ns`, without drafting. Returns what guesses have lost, or won (below 0).
  double observe(const StepShape& shape, double wall_ns, std::span<const VerifiedDraft> verified);

  const LossLedger& ledger() const { return ledger_; }
  // The chance that guess `place` of a sequence is right if those before it are, where the source says
  // that it is sure.
  double acceptance(int seat, int source, int place) const;
  // What a step takes without guesses, and each of its tokens.
  double plain_ns(const StepShape& shape) const { return ns(shape.rows, shape); }
  // What a row more takes, of so many more.
  double row_ns(const StepShape& shape, int rows) const {
    return (cost_.ns(shape.rows + rows) - cost_.ns(shape.rows)) / std::max(1, rows);
  }
  double token_ns(const StepShape& shape) const {
    return ns(shape.decoding, shape) / std::max(1, shape.decoding);
  }

 private:
  // Guesses that were tried, those that were right, and how many the source expected to be. All fade with
  // time.
  struct Record {
    double tried = 0, right = 0, expected = 0;
    double ratio(double prior) const;
    double rate(double prior) const;
    void fade(double factor);
  };
  struct Slot {
    double survival;
    int candidate, place;
  };
  double ns(int rows, const StepShape& shape) const { return cost_.ns(rows) + shape.kv_ns; }
  std::size_t at(int seat, int source, int place) const {
    const int index = (seat * options_.sources + source) * options_.max_guesses + place;
    return static_cast<std::size_t>(index);
  }
  double rate(int seat, int source, int place) const;
  void list_slots(std::span<const DraftCandidate> candidates);
  void learn(const VerifiedDraft& draft);
  void look_at_plain(const StepShape& shape, double wall_ns, bool guesses);

  PolicyOptions options_;
  StepCost cost_;
  LossLedger ledger_;
  std::vector<Record> of_seats_;    // [seat][source][place]
  std::vector<Record> of_sources_;  // [source][place]
  std::vector<Slot> slots_;
  int guessed_ = 0;     // steps with guesses since one without
  int plain_left_ = 0;  // steps that take none, to measure what they cost now
  int decoded_ = 0;     // steps that decoded, up to where it stops to matter
};

}  // namespace vitrine
