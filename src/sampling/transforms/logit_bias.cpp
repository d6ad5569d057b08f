// logit' = logit + bias, for the tokens of the request's logit_bias map. OpenAI's meaning: a bias
// of -100 bans a token in practice, one of 100 makes it certain.
#include "sampling/candidates.h"
#include "sampling/sampler.h"
#include "sampling/token_lists.h"

namespace vitrine {
namespace {

bool active(std::span<const double>, const TokenLists& lists) {
  return !lists.bias.entries().empty();
}

void apply(Candidates& c, const SamplerInput& in) {
  c.edit(in.lists.bias, [](double logit, const LogitBias& entry) { return logit + entry.bias; });
}

}  // namespace

extern const SamplerDef kSampler_logit_bias;
const SamplerDef kSampler_logit_bias{.name = "logit_bias",
                                     .order = 10,
                                     .help = "add a bias to the logits of chosen tokens",
                                     .params = {},
                                     .always_runs = true,
                                     .beams = true,
                                     .active = active,
                                     .apply = apply};

}  // namespace vitrine
