// A row of logits for tests of transforms.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "sampling/candidates.h"
#include "sampling/history.h"
#include "sampling/logprobs.h"
#include "sampling/params.h"

namespace vitrine::test {

inline constexpr float kInf = std::numeric_limits<float>::infinity();

inline std::vector<float> logs(std::vector<double> probabilities) {
  std::vector<float> out;
  for (const double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}

// One transform at a time over a row of logits; reports what is left, in the fixed order.
class Row {
 public:
  explicit Row(std::vector<float> logits)
      : logits_(std::move(logits)),
        scratch_(logits_.size()),
        candidates_(logits_, scan_logits(logits_).max, scratch_) {}

  // Values that are not given are neutral.
  Row& apply(const char* name, std::vector<double> values = {}) {
    const SamplerDef& def = *find_sampler(name);
    for (std::size_t i = values.size(); i < def.params.size(); ++i)
      values.push_back(def.params[i].neutral);
    def.apply(candidates_, {values, lists_, history_, key_});
    return *this;
  }
  Row& bias(std::vector<LogitBias> entries) {
    lists_.bias = BiasTable::make(std::move(entries)).value();
    return *this;
  }
  Row& allowed(std::vector<std::int32_t> ids) {
    lists_.allowed = std::make_shared<const std::vector<std::int32_t>>(std::move(ids));
    return *this;
  }
  Row& breakers(std::vector<std::int32_t> ids) {
    lists_.breakers = std::make_shared<const std::vector<std::int32_t>>(std::move(ids));
    return *this;
  }
  Row& texts(std::shared_ptr<const TokenTexts> texts) {
    lists_.texts = std::move(texts);
    return *this;
  }
  Row& bad_words(std::vector<std::vector<std::int32_t>> words) {
    lists_.bad_words =
        std::make_shared<const std::vector<std::vector<std::int32_t>>>(std::move(words));
    return *this;
  }
  Row& history(std::vector<std::int32_t> prompt, std::vector<std::int32_t> output) {
    history_ =
        SamplerState(prompt, output.size(), logits_.size(), {.counts = true, .tokens = true});
    for (const auto id : output) history_.accept(id);
    return *this;
  }
  Row& position(std::uint64_t position) {
    key_.position = position;
    return *this;
  }
  Candidates& candidates() { return candidates_; }
  std::vector<std::int32_t> ids() {
    std::vector<std::int32_t> out;
    for (const Candidate& c : candidates_.sorted_first(candidates_.size())) out.push_back(c.id);
    return out;
  }
  std::vector<float> by_id() {
    std::vector<float> out(logits_.size(), -kInf);
    for (const Candidate& c : candidates_.sorted_first(candidates_.size())) out[c.id] = c.logit;
    return out;
  }

  std::vector<double> shares() {
    std::vector<double> out(logits_.size());
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = candidates_.share(static_cast<std::int32_t>(i));
    return out;
  }

 private:
  std::vector<float> logits_;
  Scratch scratch_;
  Candidates candidates_;
  TokenLists lists_;
  SamplerState history_;
  DrawKey key_;
};

}  // namespace vitrine::test
