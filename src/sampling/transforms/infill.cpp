// For texts between two others ("fill in the middle"), where it is best to say only what is certain and then to end:
//
//   1. If 3 n P(end) > P(text), where n tokens are left and the sums go over those that end a text and the others: only
//      tokens that end it.
//   2. A token whose text begins another one's says the same so far: the less likely of the two gives its probability to
//      the other. In the order of the tokens, each with all others.
//   3. Drop text below 0.2. Nothing left: the end, even where a cut has dropped it.
//   4. Of what is left, with m tokens of text, drop text below 1 / (m + 1).
//
// The sums of 2 decide who stays, not who is drawn of those that stay. llama.cpp's infill; it is made to follow top_k and
// top_p. It looks at the 128 best tokens: as if top_k were that at most.
#include <algorithm>
#include <array>

#include "sampling/candidates.h"
#include "sampling/sampler.h"
#include "sampling/token_lists.h"
#include "sampling/token_texts.h"

namespace vitrine {
namespace {

constexpr std::size_t kConsidered = 128;

constexpr Param kParams[] = {
    {.name = "infill",
     .neutral = 0,
     .min = 0,
     .max = 1,
     .integer = true,
     .help = "1: for text between two others: say what is certain, otherwise end; 0: off"}};

bool active(std::span<const double> values, const TokenLists& lists) {
  return values[0] > 0 && lists.texts != nullptr;
}

// Sums of weights stay below 2^50, so that they are exact.
struct Token {
  std::int32_t id = -1;
  std::uint64_t weight = 0;  // with what others gave it
  bool ends = false, stays = true;
};

void merge(std::span<Token> all, const TokenTexts& texts) {
  for (Token& a : all) {
    const std::string_view text = texts.text(a.id);
    if (text.empty()) continue;
    for (Token& b : all) {
      if (!a.stays) break;
      if (&a == &b || !b.stays || !texts.text(b.id).starts_with(text)) continue;
      Token &to = b.weight > a.weight ? b : a, &from = b.weight > a.weight ? a : b;
      to.weight += from.weight;
      from.weight = 0, from.stays = false;
    }
  }
}

// Where nothing is certain. The end may have been cut, but not kept off.
void end_here(Candidates& c, std::span<const Token> all, const TokenLists& lists) {
  for (const Token& t : all)
    if (t.ends) {
      c.keep_only(t.id);
      return;
    }
  const auto allowed = [&](std::int32_t id) {
    return !lists.allowed || lists.allowed->empty() ||
           std::binary_search(lists.allowed->begin(), lists.allowed->end(), id);
  };
  for (const std::int32_t id : lists.texts->ends())
    if (allowed(id) && c.keep_only(id)) return;
  c.keep_first(1);
}

void apply(Candidates& c, const SamplerInput& in) {
  const TokenTexts& texts = *in.lists.texts;
  const std::span<const Candidate> sorted = c.sorted_first(kConsidered);
  std::array<Token, kConsidered> tokens;
  const std::span<Token> all(tokens.data(), sorted.size());
  std::uint64_t ends = 0, text = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    all[i] = {.id = sorted[i].id, .weight = sorted[i].weight, .ends = texts.ends(sorted[i].id)};
    (all[i].ends ? ends : text) += all[i].weight;
  }
  if (3 * ends * all.size() > text)
    return c.keep_if([&](const Candidate& x) { return texts.ends(x.id); });
  merge(all, texts);
  std::uint64_t left = 0, count = 0;
  for (Token& t : all) {
    if (!t.ends && 5 * t.weight < ends + text) t.stays = false;
    if (!t.stays) continue;
    left += t.weight;
    count += t.ends ? 0 : 1;
  }
  if (count == 0) return end_here(c, all, in.lists);
  const auto stays = [&](const Candidate& x) {
    for (const Token& t : all)
      if (t.id == x.id) return t.stays && (t.ends || t.weight * (count + 1) >= left);
    return false;
  };
  c.keep_if(stays);
}

}  // namespace

extern const SamplerDef kSampler_infill;
const SamplerDef kSampler_infill{.name = "infill",
                                 .order = 115,
                                 .help = "between two texts, say what is certain or end",
                                 .params = kParams,
                                 .cuts = true,
                                 .active = active,
                                 .apply = apply};

}  // namespace vitrine
