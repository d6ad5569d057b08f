#include "sampling/chain.h"

#include <algorithm>

#include "base/check.h"
#include "sampling/candidates.h"

namespace vitrine {
namespace {

bool is_active(const SamplerDef& def, std::span<const double> values, const BiasTable& bias) {
  if (def.active != nullptr) return def.active(values, bias);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != def.params[i].neutral) return true;
  return false;
}

constexpr float kMasked = -std::numeric_limits<float>::infinity();

}  // namespace

void mask_logits(std::span<const float> logits, const DrawSpec& draw, std::span<float> out) {
  if (draw.allowed == nullptr) {
    std::copy(logits.begin(), logits.end(), out.begin());
  } else {
    const std::size_t known = std::min(logits.size(), draw.allowed->size() * 64);
    for (std::size_t i = 0; i < known; ++i)
      out[i] = (*draw.allowed)[i / 64] >> (i % 64) & 1 ? logits[i] : kMasked;
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(known), out.end(), kMasked);
    for (std::int32_t id : draw.also_allowed)
      if (static_cast<std::size_t>(id) < out.size()) out[id] = logits[id];
  }
  for (std::int32_t id : draw.banned)
    if (static_cast<std::size_t>(id) < out.size()) out[id] = kMasked;
}

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
  if (!draw.banned.empty() || draw.allowed != nullptr) {
    const auto copy = std::span(scratch.allowed).first(logits.size());
    mask_logits(logits, draw, copy);
    allowed = copy;
    const LogitsScan left = scan_logits(allowed);
    if (left.status != LogitsStatus::kOk) return {.status = left.status};
    max = left.max;
  }
  Candidates candidates(allowed, max, scratch);
  for (const Stage& stage : stages_) {
    if (candidates.size() == 1) break;
    apply(stage, candidates, history, draw.key());
  }

  Choice choice{.status = LogitsStatus::kOk};
  choice.token = candidates.draw(draw.key());
  if (draw.logprob) choice.logprob = LogSoftmax(logits, scan).logprob(logits[choice.token]);
  history.accept(choice.token);
  return choice;
}

std::optional<DeviceDraw> Chain::on_device() const {
  DeviceDraw draw;
  int order = 0;
  for (const Stage& stage : stages_) {
    if (stage.def->on_device == nullptr || stage.def->order < order) return std::nullopt;
    order = stage.def->order;
    const auto values = std::span(stage.values).first(stage.def->params.size());
    if (!stage.def->on_device(draw, values)) return std::nullopt;
  }
  return draw;
}

bool Chain::uses_history() const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [](const Stage& stage) { return stage.def->uses_history; });
}

}  // namespace vitrine
