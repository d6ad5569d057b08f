#include "sampling/chain.h"

#include <algorithm>

#include "base/check.h"
#include "sampling/candidates.h"

namespace vitrine {
namespace {

bool is_active(const SamplerDef& def, std::span<const double> values, const TokenLists& lists) {
  if (def.active != nullptr) return def.active(values, lists);
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

Chain::Chain(const SamplingParams& params) : lists_(params.lists()) {
  for (const SamplerDef* def : params.order()) {
    VT_CHECK(def->params.size() <= kMaxParamsPerSampler, "{}", def->name);
    Stage stage{def, {}};
    for (std::size_t i = 0; i < def->params.size(); ++i)
      stage.values[i] = params.get(def->params[i].name);
    if (is_active(*def, stage.set(), lists_)) stages_.push_back(stage);
  }
  const bool replaced = std::any_of(stages_.begin(), stages_.end(),
                                    [](const Stage& s) { return s.def->replaces_cuts; });
  if (replaced) std::erase_if(stages_, [](const Stage& s) { return s.def->cuts; });
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (stages_[i].def->state == nullptr) continue;
    VT_CHECK(stateful_ < 0, "{} has a state too", stages_[i].def->name);
    stateful_ = static_cast<int>(i);
  }
}

Choice Chain::sample(std::span<const float> logits, SamplerState& history, const DrawSpec& draw,
                     Scratch& scratch) const {
  const Choice choice = look(logits, history, draw, scratch);
  if (choice.status == LogitsStatus::kOk) take(history, choice.token, choice.p);
  return choice;
}

Choice Chain::look(std::span<const float> logits, const SamplerState& history, const DrawSpec& draw,
                   Scratch& scratch) const {
  const LogitsScan scan = scan_logits(logits);
  if (scan.status != LogitsStatus::kOk) return {.status = scan.status};

  if (draw.forced >= 0) {
    Choice choice{.status = LogitsStatus::kOk, .token = draw.forced};
    if (draw.logprob) choice.logprob = LogSoftmax(logits, scan).logprob(logits[choice.token]);
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
  const DrawKey key = draw.key();
  run(stages_.size(), candidates, history, key);

  Choice choice{.status = LogitsStatus::kOk};
  choice.token = candidates.draw(key);
  if (draw.logprob) choice.logprob = LogSoftmax(logits, scan).logprob(logits[choice.token]);
  if (stateful_ >= 0 && stages_[stateful_].def->state->before) {
    Candidates seen(allowed, max, scratch);
    run(static_cast<std::size_t>(stateful_), seen, history, key);
    choice.p = static_cast<float>(seen.share(choice.token));
  } else if (stateful_ >= 0) {
    choice.p = static_cast<float>(candidates.share(choice.token));
  }
  return choice;
}

LogitsStatus Chain::continuations(std::span<const float> logits, const SamplerState& history,
                                  const DrawSpec& draw, std::span<const std::int32_t> ends,
                                  std::size_t most, Scratch& scratch,
                                  std::vector<BeamCandidate>& out) const {
  out.clear();
  const LogitsScan scan = scan_logits(logits);
  if (scan.status != LogitsStatus::kOk) return scan.status;
  const LogSoftmax softmax(logits, scan);
  const auto is_end = [&](std::int32_t id) {
    return std::find(ends.begin(), ends.end(), id) != ends.end();
  };
  if (draw.forced >= 0) {
    out.push_back({draw.forced, softmax.logprob(logits[draw.forced]), is_end(draw.forced)});
    return LogitsStatus::kOk;
  }
  const auto row = std::span(scratch.allowed).first(logits.size());
  mask_logits(logits, draw, row);
  for (float& x : row)
    if (x != kMasked) x = softmax.logprob(x);
  const LogitsScan left = scan_logits(row);
  if (left.status != LogitsStatus::kOk) return left.status;
  Candidates candidates(row, left.max, scratch);
  run(stages_.size(), candidates, history, draw.key());
  std::size_t rank = 0, going = 0;
  for (const Candidate& c : candidates.best(most + ends.size())) {
    const bool end = is_end(c.id);
    if (end ? rank < most : going < most) out.push_back({c.id, c.logit, end});
    ++rank, going += !end;
  }
  return LogitsStatus::kOk;
}

void Chain::take(SamplerState& history, std::int32_t token, float p) const {
  history.accept(token);
  if (stateful_ < 0 || p < 0) return;
  const Stage& stage = stages_[stateful_];
  stage.def->state->taken(history.memory, stage.set(), p);
}

std::optional<DeviceDraw> Chain::on_device() const {
  DeviceDraw draw;
  int order = 0;
  for (const Stage& stage : stages_) {
    if (stage.def->on_device == nullptr || stage.def->order < order) return std::nullopt;
    order = stage.def->order;
    if (!stage.def->on_device(draw, stage.set())) return std::nullopt;
  }
  return draw;
}

SamplerState Chain::begin(std::span<const std::int32_t> prompt, std::size_t max_output,
                          std::size_t vocab) const {
  SamplerState::Tracks tracks{.counts = false, .tokens = false};
  for (const Stage& stage : stages_) {
    tracks.counts |= stage.def->uses_history;
    tracks.tokens |= stage.def->uses_tokens;
  }
  SamplerState out(prompt, max_output, vocab, tracks);
  if (stateful_ >= 0) {
    const Stage& stage = stages_[stateful_];
    stage.def->state->begin(out.memory, stage.set());
  }
  return out;
}

}  // namespace vitrine
