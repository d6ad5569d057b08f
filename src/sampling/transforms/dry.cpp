// "Don't repeat yourself": where the last n tokens stand earlier in the text too, the token that
// followed them there gets logit' = logit - multiplier * base^(n - allowed_length), if n is at least
// allowed_length; the longest copy counts. Weidmann 2024 (text-generation-webui, llama.cpp).
//
// Copies are looked for in the last tokens of prompt and output. They do not reach over a breaker (a
// newline, a quotation mark: things that structure a text and have to come again), and breakers
// themselves are not lowered.
//
// The lengths of all copies come from one pass of the Z algorithm over the window, backwards: linear.
#include <algorithm>
#include <array>
#include <cmath>

#include "sampling/candidates.h"
#include "sampling/history.h"
#include "sampling/sampler.h"
#include "sampling/token_lists.h"

namespace vitrine {
namespace {

constexpr std::size_t kMostWindow = 8192;

constexpr Param kParams[] = {
    {.name = "dry_multiplier",
     .neutral = 0,
     .min = 0,
     .max = 100,
     .help = "taken from the logits of tokens that go on with a repetition; 0: off"},
    {.name = "dry_base",
     .neutral = 1.75,
     .min = 1,
     .max = 10,
     .help = "how the multiplier grows with each repeated token"},
    {.name = "dry_allowed_length",
     .neutral = 2,
     .min = 1,
     .max = kMostWindow,
     .integer = true,
     .help = "repetitions shorter than this are free"},
    {.name = "dry_penalty_last_n",
     .neutral = 64,
     .min = -1,
     .max = kMostWindow,
     .integer = true,
     .help = "tokens to look for repetitions in; 0: off, -1: the most"},
};

bool active(std::span<const double> values, const TokenLists&) {
  return values[0] > 0 && values[3] != 0;
}

struct Repeat {
  std::int32_t id, length;
};

// Tokens that followed an earlier copy of the last tokens, by ascending id, with its length.
class Repeats {
 public:
  Repeats(std::span<const std::int32_t> window, std::span<const std::int32_t> breakers,
          std::int32_t allowed) {
    const auto size = static_cast<std::int32_t>(window.size());
    const auto back = [&](std::int32_t i) {
      return window[static_cast<std::size_t>(size - 1 - i)];
    };
    const auto breaks = [&](std::int32_t id) {
      return std::binary_search(breakers.begin(), breakers.end(), id);
    };
    std::int32_t most = 0;
    while (most < size && !breaks(back(most))) ++most;
    if (most < allowed) return;
    // How many tokens from the i-th on, backwards, are those from the end on.
    std::array<std::int32_t, kMostWindow> same;
    for (std::int32_t i = 1, left = 0, right = 0; i < size; ++i) {
      std::int32_t n =
          i < right ? std::min(right - i, same[static_cast<std::size_t>(i - left)]) : 0;
      while (i + n < size && back(n) == back(i + n)) ++n;
      same[static_cast<std::size_t>(i)] = n;
      if (i + n > right) left = i, right = i + n;
      if (n >= allowed && !breaks(back(i - 1))) found_[count_++] = {back(i - 1), std::min(n, most)};
    }
    const auto begin = found_.begin(), end = begin + static_cast<std::ptrdiff_t>(count_);
    std::sort(begin, end, [](const Repeat& a, const Repeat& b) {
      return a.id != b.id ? a.id < b.id : a.length > b.length;
    });
    const auto same_id = [](const Repeat& a, const Repeat& b) { return a.id == b.id; };
    count_ = static_cast<std::size_t>(std::unique(begin, end, same_id) - begin);
  }

  std::span<const Repeat> entries() const { return {found_.data(), count_}; }
  const Repeat* find(std::int32_t id) const {
    const auto all = entries();
    const auto at = std::lower_bound(all.begin(), all.end(), id,
                                     [](const Repeat& x, std::int32_t y) { return x.id < y; });
    return at != all.end() && at->id == id ? &*at : nullptr;
  }

 private:
  std::array<Repeat, kMostWindow> found_;  // on the stack: nothing here allocates
  std::size_t count_ = 0;
};

void apply(Candidates& c, const SamplerInput& in) {
  const double multiplier = in.values[0], base = in.values[1];
  const auto allowed = static_cast<std::int32_t>(in.values[2]);
  const auto tokens = in.history.tokens();
  const std::size_t most = in.values[3] < 0 ? kMostWindow : static_cast<std::size_t>(in.values[3]);
  std::span<const std::int32_t> breakers;
  if (in.lists.breakers) breakers = *in.lists.breakers;
  const Repeats repeats(tokens.last(std::min(most, tokens.size())), breakers, allowed);
  if (repeats.entries().empty()) return;
  // The power stays a number: e^88.72 is about the greatest float.
  const double highest = base > 1.000001 ? std::floor(88.7228391 / std::log(base)) : 1e9;
  c.edit(repeats, [&](double logit, const Repeat& repeat) {
    const auto over = static_cast<double>(repeat.length - allowed);
    return logit - multiplier * std::pow(base, std::min(over, highest));
  });
}

}  // namespace

extern const SamplerDef kSampler_dry;
const SamplerDef kSampler_dry{.name = "dry",
                              .order = 35,
                              .help = "lower tokens that go on with a repetition",
                              .params = kParams,
                              .uses_tokens = true,
                              .beams = true,
                              .active = active,
                              .apply = apply};

}  // namespace vitrine
