#include "sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "sampling/weight_sum.h"

namespace vitrine {
namespace {

constexpr float kMost = std::numeric_limits<float>::max();

}  // namespace

const char* logits_status_text(LogitsStatus status) {
  switch (status) {
    case LogitsStatus::kOk:
      return "ok";
    case LogitsStatus::kNan:
      return "the model produced NaN logits";
    case LogitsStatus::kMasked:
      return "every token is masked";
    case LogitsStatus::kBarred:
      return "the constraint on the text lets no token of the vocabulary follow";
  }
  return "unknown";
}

LogitsScan scan_logits(std::span<const float> logits) {
  // Independent lanes: without them the compiler may not reorder a float maximum into vectors.
  constexpr std::size_t kLanes = 32;
  float max[kLanes];
  std::int32_t nan[kLanes] = {};
  std::fill_n(max, kLanes, -std::numeric_limits<float>::infinity());
  const auto see = [&](std::size_t lane, float x) {
    max[lane] = x > max[lane] ? x : max[lane];
    nan[lane] |= x != x;
  };
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) see(lane, logits[i + lane]);
  for (; i < logits.size(); ++i) see(0, logits[i]);

  const float best = *std::max_element(max, max + kLanes);
  if (*std::max_element(nan, nan + kLanes) != 0) return {LogitsStatus::kNan, best};
  if (best == -std::numeric_limits<float>::infinity()) return {LogitsStatus::kMasked, best};
  return {LogitsStatus::kOk, best};
}

LogSoftmax::LogSoftmax(std::span<const float> logits, const LogitsScan& scan) {
  VT_CHECK(scan.status == LogitsStatus::kOk && logits.size() <= kMaxVocab, "{} logits",
           logits.size());
  max_ = std::min(scan.max, kMost);
  if (scan.max > kMost) {
    log_sum_ = std::log(static_cast<double>(std::count(logits.begin(), logits.end(), scan.max)));
    return;
  }
  const std::uint64_t sum = sum_weights(logits, max_, 1);
  log_sum_ = std::log(static_cast<double>(sum) / static_cast<double>(kWeightOne));
}

float LogSoftmax::logprob(float logit) const {
  return static_cast<float>(std::min(logit, kMost) - max_ - log_sum_);
}

std::size_t top_logprobs(std::span<const float> logits, std::span<TokenLogprob> out,
                         Scratch& scratch) {
  const LogitsScan scan = scan_logits(logits);
  if (scan.status != LogitsStatus::kOk || out.empty()) return 0;
  const LogSoftmax softmax(logits, scan);
  Candidates candidates(logits, scan.max, scratch);
  const std::span<const Candidate> best = candidates.sorted_first(out.size());
  for (std::size_t i = 0; i < best.size(); ++i)
    out[i] = {best[i].id, softmax.logprob(logits[best[i].id])};
  return best.size();
}

}  // namespace vitrine
