#include "engine/draw_state.h"

#include <algorithm>

namespace vitrine {

DrawState::DrawState(const Request& request, std::span<const std::int32_t> prompt_ids,
                     int max_output, int vocab, std::span<const std::int32_t> eos_ids,
                     int choice_index, std::uint64_t draw_seed)
    : prompt(static_cast<int>(prompt_ids.size())),
      choice(choice_index),
      seed(draw_seed),
      min_tokens(request.min_tokens),
      logprobs(request.logprobs),
      chain(std::make_unique<Chain>(request.sampling)),
      bans(request.stop_token_ids) {
  bans.insert(bans.end(), eos_ids.begin(), eos_ids.end());
  ends = request.ignore_eos ? request.stop_token_ids : bans;
  history = chain->begin(prompt_ids, static_cast<std::size_t>(max_output),
                         static_cast<std::size_t>(vocab));
  if (request.reasoning) reasoning.emplace(*request.reasoning);
  if (request.constraint) matcher.emplace(request.constraint);
}

void DrawState::copy_progress(const DrawState& from) {
  history = from.history;
  reasoning = from.reasoning;
  matcher = from.matcher;
}

bool DrawState::ends_with(std::int32_t token) const {
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

// A row at `position` chooses the token after it.
DrawSpec DrawState::spec(int position) const {
  return {seed, static_cast<std::uint32_t>(choice), static_cast<std::uint64_t>(position) + 1,
          logprobs};
}

DrawState::Next DrawState::next(int position, ConstraintMatcher* constraint,
                                const ReasoningLimit* limit) const {
  Next out{.spec = spec(position), .mask = nullptr};
  const bool early = position + 1 - prompt < min_tokens;
  if (early) out.spec.banned = bans;
  if (constraint != nullptr) {
    out.mask = constraint->mask();
    const bool may_end = constraint->may_end();
    out.complete = !out.mask->any && may_end;
    if (out.complete) return out;
    if (!out.mask->any) {
      out.status = LogitsStatus::kBarred;
      return out;
    }
    out.spec.allowed = &out.mask->words;
    if (!may_end && !early) out.spec.banned = ends;
    if (may_end && !early) out.spec.also_allowed = ends;
  }
  if (limit != nullptr) out.spec.forced = limit->forced();
  return out;
}

bool DrawState::accept(std::int32_t token) {
  if (reasoning) reasoning->accept(token);
  return !matcher || ends_with(token) || matcher->accept(token);
}

}  // namespace vitrine
