#include "draft/prediction.h"

#include <algorithm>

namespace vitrine {
namespace {

// That a guess is right if those before it are. What becomes of them corrects it (draft/policy.h).
constexpr float kSure = 0.95f;

}  // namespace

void Prediction::expect(std::shared_ptr<const std::vector<std::int32_t>> text, int prompt) {
  text_ = std::move(text);
  known_ = prompt_ = static_cast<std::size_t>(prompt);
  at_ = 0;
  lost_ = false;
}

void Prediction::begin(std::string_view) { expect(nullptr, 0); }

void Prediction::extend(std::span<const std::int32_t> tokens) {
  if (!text_) return;
  for (; known_ < tokens.size(); ++known_) {
    if (!lost_ && at_ < text_->size() && (*text_)[at_] == tokens[known_])
      ++at_;
    else
      lost_ = true;
  }
}

// The longest end of the answer that stands in the text; of equals the first after the place where it was
// lost, else the first.
void Prediction::find(std::span<const std::int32_t> answer) {
  const std::vector<std::int32_t>& text = *text_;
  const std::size_t from = at_ > kReach ? at_ - kReach : 0,
                    to = std::min(text.size(), at_ + kReach);
  const std::size_t most = std::min<std::size_t>(kMost, answer.size());
  std::size_t best = kLeast - 1, place = 0;
  bool after = false;
  for (std::size_t end = from + 1; end <= to; ++end) {
    if (text[end - 1] != answer.back()) continue;
    std::size_t same = 1;
    while (same < most && same < end && text[end - 1 - same] == answer[answer.size() - 1 - same])
      ++same;
    if (same > best || (same == best && place != 0 && !after && end > at_))
      best = same, place = end, after = end > at_;
  }
  if (place == 0) return;
  at_ = place;
  lost_ = false;
}

int Prediction::draft(std::span<const std::int32_t> tokens, std::span<Guess> out) {
  extend(tokens);
  if (!text_ || tokens.size() < prompt_) return 0;
  if (lost_ && tokens.size() > prompt_) find(tokens.subspan(prompt_));
  if (lost_) return 0;
  const std::size_t count = std::min(out.size(), text_->size() - at_);
  float probability = 1;
  for (std::size_t i = 0; i < count; ++i) out[i] = {(*text_)[at_ + i], probability *= kSure};
  return static_cast<int>(count);
}

}  // namespace vitrine
