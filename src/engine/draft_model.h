// A draft model: a smaller model of the same vocabulary, which runs ahead of the model that is served.
//
// It has weights, K and V, page pools and a prefix cache of its own, on the same backend. For every seat it
// keeps which tokens it has computed. Before it guesses it takes back those that turned out otherwise, and
// computes those that it lacks: one after a wrong guess, two after a draft that was right to its end (its own
// last guess was never computed), a whole prompt at the beginning.
//
// A guess is drawn as the target draws: by the request's chain on the draft's logits, with the noise of the
// same seed, choice and position (base/draw_race.h). So two models that agree mostly draw the same token, at
// any temperature. Constraints and budgets of reasoning are followed by copies; penalties see the tokens that
// are known, not the guesses before: a wrong guess more, never a wrong token.
//
// Whoever finds no page gives back its own, and is drafted for again when there is room for all that it needs.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "draft/step_cost.h"
#include "engine/batch.h"
#include "engine/memory_plan.h"
#include "engine/model_source.h"
#include "engine/options.h"
#include "engine/runner.h"
#include "engine/scorer.h"
#include "kv/prefix_cache.h"
#include "kv/prefix_key.h"

namespace vitrine {

class ModelFile;

class DraftModel final : public ModelSource {
 public:
  // For sequences in the first slots of an engine, so many at most: as Speculator::kMostSeats.
  static constexpr int kMostSeats = 64;
  static constexpr int kRows = 256;                    // of a pass
  static constexpr int kFewRows = kRows / kMostSeats;  // of a sequence, when it draws

  // `plan`: MemoryPlan::draft of the target's. The backend must outlive it.
  static Result<std::unique_ptr<DraftModel>> create(const EngineOptions& options, Backend& backend,
                                                    const MemoryPlan& plan);
  // The options that its plan is made with. `context`: the target's.
  static EngineOptions plan_options(const EngineOptions& options, int context, int draft_context);

  void begin(const Sequence& s) override;
  void left(const Sequence& s) override;
  int behind(const Sequence& s) override;
  int catch_up(std::span<const Wish> wishes, int rows) override;
  void draft(std::span<Wish> wishes, float least) override;
  double pass_ns(int rows) const override { return cost_.known() ? cost_.at_most(rows) : 0; }
  void check_integrity() const override;
  const PrefixCache& cache() const { return cache_; }

 private:
  struct Seat {
    // As the runner sees it: id, slot, tokens with guesses, tables, keys. `computed` counts rows that are
    // computed, of guesses too.
    Sequence shadow;
    int known = 0;           // of shadow.tokens, those that are not guesses
    bool barred = false;     // there is a token that the draft does not know
    bool looked_up = false;  // in the prefix cache
    // Of the draft that is being made.
    Wish* wish = nullptr;
    std::optional<ConstraintMatcher> matcher;
    std::optional<ReasoningLimit> reasoning;
  };

  DraftModel(const EngineOptions& options, Backend& backend, const MemoryPlan& plan);
  Status load(const EngineOptions& options);
  void warm_up();
  Seat* seat_of(const Sequence& s);
  void follow(Seat& seat, const Sequence& s);
  void look_up(Seat& seat);
  bool take_pages(Seat& seat, int end);
  void give_back(Seat& seat);
  void name_pages(Seat& seat);
  bool add(Seat& seat, int rows, bool draws);
  void run();
  bool guess(Seat& seat, int position, std::span<const float> logits);

  Backend& b_;
  const MemoryPlan& plan_;
  const std::int32_t ids_;  // those below it mean the same to both models
  const bool poison_, prefix_cache_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Scorer> scorer_;
  std::unique_ptr<Runner> runner_;
  PrefixHasher hasher_;
  PrefixCache cache_;
  std::vector<Seat> seats_;  // by slot
  StepCost cost_;
  Batch batch_;
  std::vector<Seat*> batched_, ran_;  // by entry of the batch; of the one before
  Scratch scratch_;
  float least_ = 0;
  std::uint64_t passes_ = 0;
};

}  // namespace vitrine
