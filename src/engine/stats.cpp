#include "engine/stats.h"

#include <algorithm>

namespace vitrine {
namespace {

constexpr double kFirstToken[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25, 0.5,
                                  0.75,  1.0,   2.5,  5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160.0};
constexpr double kInterToken[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1,
                                  0.15,   0.2,   0.3,    0.4,   0.5,  0.75,  1.0,  2.5,   5.0};
constexpr double kSeconds[] = {0.001, 0.005, 0.01, 0.05, 0.1, 0.3,  0.5,  0.8,  1.0,   1.5,  2.0,
                               2.5,   5.0,   10.0, 15.0, 20., 30.0, 40.0, 60.0, 120.0, 240.0};
constexpr double kTokens[] = {1,   2,    5,    10,   20,    50,    100,   200,
                              500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
constexpr double kStepTokens[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};

}  // namespace

const char* sequence_state_name(SequenceState state) {
  static constexpr const char* kNames[] = {"waiting", "preempted", "prefill", "decode", "paused"};
  return kNames[static_cast<int>(state)];
}

void Histogram::add(double value) {
  ++counts_[std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin()];
  sum_ += value;
  ++count_;
}

Metrics::Metrics()
    : time_to_first_token(kFirstToken),
      inter_token_latency(kInterToken),
      queue_time(kSeconds),
      prefill_time(kSeconds),
      decode_time(kSeconds),
      e2e_latency(kSeconds),
      prompt_length(kTokens),
      generation_length(kTokens),
      step_tokens(kStepTokens) {}

}  // namespace vitrine
