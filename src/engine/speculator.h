// Speculative decoding: which guesses the sequences that decode carry into the next step, and what became of
// them. The guesses are made by sources: of texts (draft/source.h), of a model (engine/model_source.h). How
// many are worth making and computing is decided by a policy (draft/policy.h) from what steps have taken so
// far. Where several sources could guess for a sequence, the one takes it that promises most.
//
// A guess never changes a token. The row of a guessed token is computed beside the last known one, every token
// is drawn as it would have been without, and the first that is not the guess ends the sequence's draws
// (scorer.h). So what is decided here changes how long a step takes, and nothing else.
//
// Sources look at tokens that the host knows, so a sequence with guesses has nothing in flight. Where steps are
// committed late (EngineOptions::commit_delay) that is no matter of course: sources of texts guess behind the step in
// flight too, and where that is promising, or a model would guess, the engine is asked to commit all before it plans
// again (settles()), as long as there are guesses worth their rows. All sequences together: half of them in a step
// would read all weights for it. What the device waits for meanwhile is part of what such steps cost, and so of the
// decision.
//
// Engine thread only; all but draft() under the engine's books lock. Nothing allocates after construction but
// what a model source says.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "draft/ngram.h"
#include "draft/policy.h"
#include "draft/prediction.h"
#include "draft/suffix.h"
#include "engine/batch.h"
#include "engine/model_source.h"
#include "engine/options.h"
#include "engine/step_record.h"

namespace vitrine {

class Speculator {
 public:
  // For the sequences in the first slots, kMostSeats at most: with more at once a step is bound by its rows, and
  // guesses win nothing. `model` may be null; it must outlive it.
  Speculator(const EngineOptions& options, int sequences, ModelSource* model = nullptr);
  static constexpr int kMostSeats = 64;
  // Of the host's memory, at most about options.spec_mib.
  std::int64_t bytes() const;
  bool on() const { return !seats_.empty(); }
  // Whether most steps carry guesses; false where they would lose time.
  bool active() const { return active_; }
  // Tells the log once when that has changed.
  void tell();

  // The sequence has got its slot; it gives it back; it has ended and has its slot still.
  void begin(const Sequence& s);
  void left(const Sequence& s);
  void ended(const Sequence& s);
  // Makes the guesses of the next step, before it is planned. `shape`: as it will be without guesses.
  void draft(std::span<const std::unique_ptr<Sequence>> running, const StepShape& shape);
  // Fills in Sequence::draft with those that are worth their rows.
  void propose(std::span<const std::unique_ptr<Sequence>> running, StepShape shape, Batch& batch);
  // The last step is wanted committed before the next one is planned.
  bool settles() const { return settles_; }
  // The batch's tokens have been appended. Fills in what the record says of guesses.
  void observe(const Batch& batch, StepRecord& record);
  void check_integrity() const {
    if (model_ != nullptr) model_->check_integrity();
  }

 private:
  struct Seat {
    std::uint64_t sequence = 0;         // whose text the sources know; 0: none
    int learned = 0;                    // tokens of it
    std::unique_ptr<DraftSource> text;  // null: none
    Prediction prediction;
    // The last guesses, by a source.
    std::vector<Guess> guesses, others;
    GuessSource source = GuessSource::kNgram;
    int ahead = 0;  // of these, for tokens in flight
    int count = 0;  // and behind them
  };
  Seat* seat_of(const Sequence& s);
  static bool ready(const Sequence& s, int left);
  bool learn(const Sequence& s, Seat& seat);
  void guess(const Sequence& s, Seat& seat, int most);
  void guess(const Sequence& s, Seat& seat, int most, DraftSource& source, GuessSource kind);
  DraftCandidate candidate(const Sequence& s, const Seat& seat) const;
  void draft_by_model(const StepShape& shape);
  int explore(const StepShape& shape, double drafting_ns);
  bool pays(const ModelSource::Wish& wish, int behind, double token_ns) const;
  void charge(const Batch& batch, const StepShape& shape, double wall_ns, StepRecord& record);

  const int most_;     // guesses for a sequence and step
  const bool always_;  // whatever they cost (tests)
  const bool late_;    // steps are committed late
  bool settles_ = false;
  bool waited_ =
      false;  // the step that is planned has nothing in flight before it, because settles() was true
  ModelSource* model_;
  GuessSource text_kind_ = GuessSource::kSuffix;
  std::unique_ptr<SharedSuffixes> shared_;
  std::vector<Seat> seats_;  // by slot
  std::unique_ptr<DraftPolicy> policy_;
  std::vector<DraftCandidate> candidates_;
  std::vector<Sequence*> drafting_;  // whose they are
  std::vector<ModelSource::Wish> wishes_;
  std::vector<VerifiedDraft> verified_;
  // What making the guesses of the next step took: all of it, the model's part, and what the step is charged
  // with. A prompt that the model had to catch up with is charged over many steps.
  std::int64_t took_ns_ = 0, model_ns_ = 0;
  double charged_ns_ = 0, uncharged_ns_ = 0, debt_ns_ = 0, debt_part_ns_ = 0;
  // Times that a draft of a model was not worth it, one after the other, and when it is tried nevertheless.
  int in_vain_ = 0, explore_after_ = 32;
  bool exploring_ = false;  // the guesses are computed, whatever they cost
  bool wanted_ = false;     // there was something to guess
  double use_ = 1;          // the share of the last such steps that carried guesses
  bool active_ = true, told_ = true;
};

}  // namespace vitrine
