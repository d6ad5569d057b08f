// `vitrine bench --spec-acceptance`: what speculation takes and wins when guesses are right so often, in pairs of
// runs without and with it. The guesses are simulated: a run with speculation is given the tokens of the run without,
// some of them made wrong. All else is as in serving: the policy decides how many guesses a step computes, every
// token is drawn from its row.
//
// Where bits depend on the batch (cuda without --deterministic), the texts of a pair may part. So tokens are drawn
// at the highest temperature: the noise of a draw, which depends on the position only, has more say than the last
// bits of a logit, and brings texts that have parted together again. The share of equal tokens is reported.
#pragma once

#include "draft/simulated.h"
#include "engine/engine.h"

namespace vitrine {

// Of steps in which every sequence decodes; medians of the pairs.
struct SpeculationFigures {
  double off_tok_s = 0, on_tok_s = 0, ratio = 0;  // of a pair
  // With speculation, over all pairs.
  double guesses_per_step = 0, tokens_per_step = 0;  // of a sequence
  double right = 0;                                  // of the guesses that were tried
  double same_tokens = 0;                            // of all: equal to those without
  double idle_share = 0;                             // of the device's time, where steps are queued
};

// `texts` is what the engine's sources guess from (EngineOptions::spec_source). Each of the engine's sequences has
// `prompt` tokens in and `tokens` out.
Result<SpeculationFigures> bench_simulated(Engine& engine, KnownTexts& texts, int prompt,
                                           int tokens, int pairs);

}  // namespace vitrine
