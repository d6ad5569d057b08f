// The model's own distribution: the log-softmax of the logits as they came, before any transform.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sampling/candidates.h"

namespace vitrine {

// What can be wrong with a row of logits. Such a row is an error of its own sequence, not of the
// batch.
enum class LogitsStatus {
  kOk,
  kNan,     // at least one NaN: broken weights, or an overflow inside the model
  kMasked,  // no logit above -inf (or no logits): no token may follow
  kBarred,  // the request's constraint lets no token follow
};

const char* logits_status_text(LogitsStatus status);

struct LogitsScan {
  LogitsStatus status;
  float max;  // meaningful when status is kOk; may be +inf
};
LogitsScan scan_logits(std::span<const float> logits);

// logprob(x) = x - log(sum of exp(logits)); several logits of +inf share the probability equally.
class LogSoftmax {
 public:
  // scan.status must be kOk.
  LogSoftmax(std::span<const float> logits, const LogitsScan& scan);
  float logprob(float logit) const;

 private:
  double max_;
  double log_sum_;  // of exp(logit - max_)
};

struct TokenLogprob {
  std::int32_t token;
  float logprob;
};

// Fills `out` with the best tokens, descending logit then ascending id. Returns how many: fewer
// than asked for when fewer are unmasked, none when the logits are not kOk.
std::size_t top_logprobs(std::span<const float> logits, std::span<TokenLogprob> out,
                         Scratch& scratch);

}  // namespace vitrine
