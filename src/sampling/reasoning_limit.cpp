#include "sampling/reasoning_limit.h"

#include "base/check.h"

namespace vitrine {

ReasoningLimit::ReasoningLimit(ReasoningBudget budget) : budget_(std::move(budget)) {
  VT_CHECK(!budget_.begin.empty() && !budget_.end.empty());
  if (budget_.closing <= 0) budget_.closing = static_cast<int>(budget_.end.size());
  if (budget_.inside) enter();
}

void ReasoningLimit::enter() {
  state_ = used_ < budget_.tokens ? State::kInside : State::kEnding;
  at_ = 0;
}

void ReasoningLimit::leave() {
  state_ = budget_.repeats ? State::kBefore : State::kAfter;
  at_ = 0;
}

// Tags are one token, or a few different ones: after a mismatch only a new beginning counts.
bool ReasoningLimit::follow(const std::vector<std::int32_t>& tag, std::size_t size,
                            std::int32_t token) {
  at_ = token == tag[at_] ? at_ + 1 : token == tag[0] ? 1 : 0;
  return at_ == size;
}

void ReasoningLimit::accept(std::int32_t token) {
  switch (state_) {
    case State::kBefore:
      if (follow(budget_.begin, budget_.begin.size(), token)) enter();
      break;
    case State::kInside:
      if (follow(budget_.end, static_cast<std::size_t>(budget_.closing), token)) {
        leave();
      } else if (++used_ >= budget_.tokens) {
        // Tokens of the end tag that are already there count.
        state_ = State::kEnding;
      }
      break;
    case State::kEnding:
      if (++at_ == budget_.end.size()) leave();
      break;
    case State::kAfter:
      break;
  }
}

}  // namespace vitrine
