// What the next token of a sequence is drawn under: the chain and its history, the constraint, the
// budget of reasoning, tokens that cannot come yet. A pure function of the request and of the tokens so
// far (with a sampler that has a state, also of their Choice::p), so that a look at a sequence that has
// ended (a replay) finds what served. Used by one thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/request.h"
#include "grammar/constraint.h"
#include "sampling/chain.h"

namespace vitrine {

struct DrawState {
  DrawState() = default;
  // `vocab` and `eos_ids`: the model's.
  DrawState(const Request& request, std::span<const std::int32_t> prompt, int max_output, int vocab,
            std::span<const std::int32_t> eos_ids, int choice, std::uint64_t seed);

  // How the token after the row at `position` is drawn.
  struct Next {
    DrawSpec spec;
    std::shared_ptr<const grammar::TokenMask> mask;  // that `spec` refers to
    bool complete = false;                           // the text is: nothing may follow
    LogitsStatus status = LogitsStatus::kOk;         // kBarred: no token may follow
  };
  DrawSpec spec(int position) const;
  Next next(int position) {
    return next(position, matcher ? &*matcher : nullptr, reasoning ? &*reasoning : nullptr);
  }
  // The same where these are (null: there is none): copies that are ahead by guesses.
  Next next(int position, ConstraintMatcher* constraint, const ReasoningLimit* limit) const;
  // Advances by a token that was drawn; the history has it already. False: the constraint does not
  // allow it.
  bool accept(std::int32_t token);
  // The same for a token that is only known; `p`: Choice::p of its draw.
  bool follow(std::int32_t token, float p) {
    chain->take(history, token, p);
    return accept(token);
  }
  // As far as `from`, which is of the same request.
  void copy_progress(const DrawState& from);
  bool ends_with(std::int32_t token) const;

  int prompt = 0;  // its length
  int choice = 0;
  std::uint64_t seed = 0;
  int min_tokens = 0;
  bool logprobs = false;
  std::unique_ptr<Chain> chain;
  SamplerState history;
  std::optional<ReasoningLimit> reasoning;
  std::optional<ConstraintMatcher> matcher;  // where the sampled tokens stand in the constraint
  std::vector<std::int32_t> ends;            // tokens that end the text
  std::vector<std::int32_t> bans;            // tokens that min_tokens keeps off
};

}  // namespace vitrine
