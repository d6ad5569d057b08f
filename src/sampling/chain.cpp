#include "sampling/chain.h"

#include <algorithm>

#include "base/check.h"
#include "sampling/candidates.h"
#include "sampling/rng.h"

namespace vitrine {
namespace {

bool is_active(const SamplerDef& def, std::span<const double> values, const BiasTable& bias) {
  if (def.active != nullptr) return def.active(values, bias);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != def.params[i].neutral) return true;
  return false;
}

}  // namespace

Chain::Chain(const SamplingParams& params) : bias_(params.logit_bias()) {
  for (const SamplerDef* def : params.order()) {
    VT_CHECK(def->params.size() <= kMaxParamsPerSampler, "{}", def->name);
    Stage stage{def, {}};
    for (std::size_t i = 0; i < def->params.size(); ++i)
      stage.values[i] = params.get(def->params[i].name);
    if (is_active(*def, std::span(stage.values).first(def->params.size()), bias_))
      stages_.push_back(stage);
  }
}

Choice Chain::sample(std::span<const float> logits, SamplerState& history, const DrawSpec& draw,
                     Scratch& scratch) const {
  const LogitsScan scan = scan_logits(logits);
  if (scan.status != LogitsStatus::kOk) return {.status = scan.status};

  if (draw.forced >= 0) {
    Choice choice{.status = LogitsStatus::kOk, .token = draw.forced};
    if (draw.logprob) choice.logprob = LogSoftmax(logits, scan).logprob(logits[choice.token]);
    history.accept(choice.token);
    return choice;
  }
  std::span<const float> allowed = logits;
  float max = scan.max;
  if (!draw.banned.empty()) {
    std::copy(logits.begin(), logits.end(), scratch.allowed.begin());
    for (std::int32_t id : draw.banned)
      if (static_cast<std::size_t>(id) < logits.size())
        scratch.allowed[id] = -std::numeric_limits<float>::infinity();
    allowed = std::span(scratch.allowed).first(logits.size());
    const LogitsScan left = scan_logits(allowed);
    if (left.status != LogitsStatus::kOk) return {.status = left.status};
    max = left.max;
  }
  Candidates candidates(allowed, max, scratch);
  for (const Stage& stage : stages_) {
    if (candidates.size() == 1) break;
    const auto values = std::span(stage.values).first(stage.def->params.size());
    stage.def->apply(candidates, {values, bias_, history});
  }

  Choice choice{.status = LogitsStatus::kOk};
  choice.token = candidates.draw(random_bits(draw.seed, draw.choice_index, draw.position));
  if (draw.logprob) choice.logprob = LogSoftmax(logits, scan).logprob(logits[choice.token]);
  history.accept(choice.token);
  return choice;
}

bool Chain::uses_history() const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [](const Stage& stage) { return stage.def->uses_history; });
}

std::vector<const char*> Chain::stage_names() const {
  std::vector<const char*> names;
  for (const Stage& stage : stages_) names.push_back(stage.def->name);
  return names;
}

}  // namespace vitrine
