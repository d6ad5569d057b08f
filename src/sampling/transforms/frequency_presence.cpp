// logit' = logit - count * frequency_penalty - (count > 0) * presence_penalty, where count is how
// often the token occurs in the output. OpenAI's definition; the prompt does not count.
#include "sampling/candidates.h"
#include "sampling/history.h"
#include "sampling/sampler.h"

namespace vitrine {
namespace {

constexpr Param kParams[] = {{.name = "frequency_penalty",
                              .neutral = 0,
                              .min = -2,
                              .max = 2,
                              .help = "taken from a token's logit for each time the output has it"},
                             {.name = "presence_penalty",
                              .neutral = 0,
                              .min = -2,
                              .max = 2,
                              .help = "taken from a token's logit once if the output has it"}};

void apply(Candidates& c, const SamplerInput& in) {
  c.edit(in.history, [frequency = in.values[0], presence = in.values[1]](
                         double logit, const SamplerState::Entry& entry) {
    return entry.output_count == 0 ? logit : logit - entry.output_count * frequency - presence;
  });
}

}  // namespace

extern const SamplerDef kSampler_frequency_presence;
const SamplerDef kSampler_frequency_presence{.name = "frequency_presence",
                                             .order = 30,
                                             .help = "lower the logits of tokens in the output",
                                             .params = kParams,
                                             .uses_history = true,
                                             .beams = true,
                                             .apply = apply};

}  // namespace vitrine
