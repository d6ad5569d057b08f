// The sampler seam: one file in transforms/ is one transform of the next-token distribution, with
// its parameters. Flags, request validation, presets and docs enumerate all_samplers(); nothing
// outside this folder knows a transform by name.
//
// The default order, by SamplerDef::order:
//
//   10 logit_bias           add a bias to chosen tokens
//   12 allowed_token_ids    keep chosen tokens only
//   14 bad_words            drop the last token of a word whose other tokens were just said
//   16 no_repeat_ngram      drop tokens that complete an n-gram seen before
//   20 repetition           repetition_penalty, over prompt and output
//   30 frequency_presence   frequency_penalty, presence_penalty, over the output
//   35 dry                  lower tokens that go on with a repetition, by its length
//   40 temperature          divide the logits; 0 keeps the best token only (greedy)
//   45 top_n_sigma          keep the logits near the best, in standard deviations
//   48 top_h                keep the best until their part of the entropy is reached
//   50 top_k                keep the k best
//   60 top_p                keep the best until their mass reaches p, the crossing one included
//   70 min_p                keep those with at least this share of the best one's probability
//   80 typical              typical_p, keep the mass nearest to the expected surprise
//   90 epsilon_cutoff       keep those with at least this probability
//  100 eta_cutoff           the same, with a lower bar where the model is unsure
//  110 xtc                  by a coin, drop the likeliest but one
//  115 infill               between two texts, say what is certain or end
//  120 adaptive_p           prefer tokens whose probability is near a target
//  130 mirostat             keep what brings the surprise near a target, instead of all other cuts
//
// A request may name another order ("samplers": ["top_k", "temperature"]). A transform that the
// list leaves out is not applied, whatever its parameters say, with these exceptions: logit_bias,
// allowed_token_ids and bad_words are constraints, not preferences, and run first when not listed.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string_view>

#include "base/draw_race.h"

namespace vitrine {

class Candidates;
class SamplerState;
struct SamplerMemory;
struct TokenLists;

// A number that a user may set. At `neutral`, which is also the built-in default, it has no effect,
// or none while the sampler's first parameter is at its own.
struct Param {
  const char* name;  // as in a request: "top_k"; the flag is --top-k
  double neutral;
  double min;
  double max;
  bool min_excluded = false;  // true: the value must be above min
  bool integer = false;
  const char* help;
};

// What a device can do by itself, in the default order.
struct DeviceDraw {
  double scale = 1;                                           // of the logits
  int top_k = 0;                                              // 0: off; 1: the best token only
  double top_p = 1;                                           // 1: off
  double max_nats = std::numeric_limits<double>::infinity();  // min_p, below the best
};

// What a transform sees besides the candidates.
struct SamplerInput {
  std::span<const double> values;  // in the order of SamplerDef::params
  const TokenLists& lists;
  const SamplerState& history;
  DrawKey key;  // of the token to be drawn: transforms that toss a coin do it by this
};

// A sampler that remembers: a few numbers, which change when a token is taken and at no other time,
// by one more number: its probability. So they can be computed again from a sequence that is told.
struct SamplerStateDef {
  void (*begin)(SamplerMemory& memory, std::span<const double> values);
  void (*taken)(SamplerMemory& memory, std::span<const double> values, double p);
  // p is the probability among what the sampler saw; else in the distribution that was drawn from.
  bool before = false;
};

// The p of a token that was not drawn, but forced or put there: no state changes by it.
inline constexpr float kNoShare = -1;

struct SamplerDef {
  const char* name;  // the file's stem
  int order;         // place in the default order; unique
  const char* help;
  std::span<const Param> params;
  bool uses_history = false;   // reads the counts of SamplerInput::history
  bool uses_tokens = false;    // reads its tokens
  bool always_runs = false;    // a constraint: runs first, whatever order a request asks for
  bool cuts = false;           // drops or reweighs tokens by their probability, so it
  bool replaces_cuts = false;  // is left out where a sampler that does this is active
  bool beams = false;          // beam search has it too: it edits, by tokens alone
  const SamplerStateDef* state = nullptr;  // null: none; of all that are active at most one has
  // False: skipped for the whole request. Null: active when any value is not neutral.
  bool (*active)(std::span<const double> values, const TokenLists& lists) = nullptr;
  // On the step path: must not allocate. Leaves at least one candidate.
  void (*apply)(Candidates& candidates, const SamplerInput& in);
  // Translates its values for a draw on the device; false: not with these. Null: runs only on the
  // host.
  bool (*on_device)(DeviceDraw& draw, std::span<const double> values) = nullptr;
};

inline constexpr std::size_t kMaxParamsPerSampler = 4;

std::span<const SamplerDef* const> all_samplers();      // generated; by file name
std::span<const SamplerDef* const> ordered_samplers();  // by SamplerDef::order
const SamplerDef* find_sampler(std::string_view name);  // null when there is none

}  // namespace vitrine
