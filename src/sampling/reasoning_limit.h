// A budget for a model's reasoning, over token ids: after that many tokens of reasoning, the tokens
// that end it are drawn whatever the logits say. A pure function of the tokens so far, like
// everything that draws. Allocates nothing after it is made.
#pragma once

#include <cstdint>
#include <vector>

namespace vitrine {

struct ReasoningBudget {
  int tokens = 0;                        // between begin and end
  std::vector<std::int32_t> begin, end;  // the tags; not empty
  bool inside = false;                   // the prompt has opened it
  // How many tokens of `end` suffice when the model writes them itself; 0: all.
  int closing = 0;
  bool repeats = false;  // it may begin again, on what is left of the budget
};

class ReasoningLimit {
 public:
  explicit ReasoningLimit(ReasoningBudget budget);
  // The token that has to come now; -1: any.
  std::int32_t forced() const { return state_ == State::kEnding ? budget_.end[at_] : -1; }
  void accept(std::int32_t token);

 private:
  enum class State { kBefore, kInside, kEnding, kAfter };
  // How much of the first `size` of `tag` the tokens end with; true once that is all.
  bool follow(const std::vector<std::int32_t>& tag, std::size_t size, std::int32_t token);
  void enter();
  void leave();

  ReasoningBudget budget_;
  State state_ = State::kBefore;
  std::size_t at_ = 0;  // in the tag that is looked for, or in `end` while it is drawn
  int used_ = 0;
};

}  // namespace vitrine
