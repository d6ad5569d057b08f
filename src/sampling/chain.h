// From a row of logits to a token: the transforms of one request, in their order, then a draw.
//
// The token is a pure function of (logits, params, history, seed, choice index, position). It does
// not depend on the batch, the thread or the scratch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/draw_race.h"
#include "sampling/beam_search.h"
#include "sampling/history.h"
#include "sampling/logprobs.h"
#include "sampling/params.h"

namespace vitrine {

// Whose noise a token is drawn with (base/draw_race.h), under which rules, and what to report about
// it.
struct DrawSpec {
  std::uint64_t seed;
  std::uint32_t choice_index;                 // index of the choice within its request
  std::uint64_t position;                     // index of the token in its sequence
  bool logprob = true;                        // costs a pass of exponentials over the vocabulary
  std::span<const std::int32_t> banned = {};  // tokens that cannot be drawn here
  std::int32_t forced = -1;  // this token is drawn, whatever the logits say; -1: none
  // Bits of the tokens that are allowed, by id, and a list of further ones; null: all are allowed.
  const std::vector<std::uint64_t>* allowed = nullptr;
  std::span<const std::int32_t> also_allowed = {};

  DrawKey key() const { return {.seed = seed, .position = position, .choice = choice_index}; }
};

struct Choice {
  LogitsStatus status;
  std::int32_t token = -1;  // valid when status is kOk
  float logprob = 0;        // under the model's own distribution; 0 when not asked for
  float p = kNoShare;       // what a sampler with a state learns of it
};

struct Explanation;  // explain.h

class Chain {
 public:
  // Keeps the transforms that do something; those at neutral values cost nothing.
  explicit Chain(const SamplingParams& params);

  // Draws a token and takes it into `history`. Allocates nothing. `scratch` must be made for a
  // vocabulary of at least logits.size().
  Choice sample(std::span<const float> logits, SamplerState& history, const DrawSpec& draw,
                Scratch& scratch) const;

  // The same without taking it.
  Choice look(std::span<const float> logits, const SamplerState& history, const DrawSpec& draw,
              Scratch& scratch) const;
  // For beam search: the best continuations by log probability, which the transforms edit in place of logits. `most`
  // of them that do not end the text (with one of `ends`), and those that do among the first `most`. Allocates
  // nothing where `out` has room. Not kOk: there are none.
  LogitsStatus continuations(std::span<const float> logits, const SamplerState& history,
                             const DrawSpec& draw, std::span<const std::int32_t> ends,
                             std::size_t most, Scratch& scratch,
                             std::vector<BeamCandidate>& out) const;

  // Accepts a token into `history`; `p`: Choice::p of its draw.
  void take(SamplerState& history, std::int32_t token, float p) const;
  // The sampler of it that has a state, if one has: following a sequence takes the p of its tokens.
  const SamplerDef* stateful() const { return stateful_ < 0 ? nullptr : stages_[stateful_].def; }

  // What sample() does to the row, stage by stage, each with its `top` best tokens, and the token that
  // it would draw. `only_last`: of the stages only the last. Allocates.
  Explanation explain(std::span<const float> logits, const SamplerState& history,
                      const DrawSpec& draw, std::size_t top, Scratch& scratch,
                      bool only_last = false) const;

  // The same draw as parameters for a device; none when a transform runs only on the host or the
  // order is not the default one.
  std::optional<DeviceDraw> on_device() const;
  // The history that it needs, of a sequence that begins; see SamplerState.
  SamplerState begin(std::span<const std::int32_t> prompt, std::size_t max_output,
                     std::size_t vocab) const;

 private:
  struct Stage {
    const SamplerDef* def;
    std::array<double, kMaxParamsPerSampler> values;
    std::span<const double> set() const { return std::span(values).first(def->params.size()); }
  };

  void apply(const Stage& stage, Candidates& candidates, const SamplerState& history,
             const DrawKey& key) const {
    stage.def->apply(candidates, {stage.set(), lists_, history, key});
  }

  // The first n stages.
  void run(std::size_t n, Candidates& candidates, const SamplerState& history,
           const DrawKey& key) const {
    for (std::size_t i = 0; i < n && candidates.size() > 1; ++i)
      apply(stages_[i], candidates, history, key);
  }

  std::vector<Stage> stages_;
  int stateful_ = -1;  // the stage that has a state
  TokenLists lists_;
};

// The logits of the tokens that the draw allows; the others are -inf. `out` has the size of `logits`.
void mask_logits(std::span<const float> logits, const DrawSpec& draw, std::span<float> out);

}  // namespace vitrine
