#include "engine/batch.h"

namespace vitrine {

int padded_rows(int n) {
  auto to = [n](int unit) { return (n + unit - 1) / unit * unit; };
  return n <= 8 ? n : n <= 64 ? to(8) : n <= 256 ? to(16) : to(64);
}

void Batch::reserve(int sequences, int step_tokens, int groups, int guesses) {
  entries.reserve(sequences);
  copies.reserve(static_cast<std::size_t>(sequences) * groups);
  scores.reserve(step_tokens), pools.reserve(step_tokens), drawn.reserve(step_tokens);
  top.reserve(static_cast<std::size_t>(sequences) * (1 + guesses) * kMaxTopLogprobs);
  absent.reserve(sequences);
}

void Batch::clear() {
  entries.clear(), scores.clear(), pools.clear(), copies.clear(), drawn.clear(), top.clear();
  absent.clear();
  tokens = forks = 0;
  draft_ns = model_draft_ns = 0, charged_ns = 0;
  waited = false;
}

}  // namespace vitrine
