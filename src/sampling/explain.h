// What every stage of a chain does to a row: the same transforms that serve, one after the other, on
// copies. For people who want to see it; nothing here is on the step path, and it allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sampling/candidates.h"
#include "sampling/chain.h"

namespace vitrine {

// The distribution after a stage. Weights are those of base/draw_weight.h: the ones of `top` and
// `rest_weight` sum to `total` exactly.
struct StageView {
  const char* name;  // "model", "mask", "forced", or a transform's
  std::vector<std::pair<const char*, double>> params = {};  // those that are not neutral
  std::size_t kept = 0;                                     // tokens that are left
  double mass = 1;                  // of the stage before, the share that was kept
  double entropy = 0;               // in nats
  std::vector<Candidate> top = {};  // the best: descending logit, ascending id
  std::size_t rest = 0;             // tokens that are left beside these
  std::uint64_t rest_weight = 0, total = 0;

  double p(std::uint64_t weight) const {
    return static_cast<double>(weight) / static_cast<double>(total);
  }
};

struct Explanation {
  LogitsStatus status = LogitsStatus::kOk;
  std::vector<StageView> stages;  // those that ran, in their order
  std::vector<Candidate> last;    // the candidates of the last stage that have weight, by id
  std::int32_t token = -1;        // that is drawn; valid when status is kOk

  std::uint64_t weight(std::int32_t id) const;  // in the last stage
  std::uint64_t total() const { return stages.back().total; }
};

// How often each token comes when the last stage is drawn from with each of the `draws` seeds after
// that of `key`: by falling count, then by id. Coins (xtc's) stay as they fell.
std::vector<std::pair<std::int32_t, int>> draw_often(const Explanation& explanation, int draws,
                                                     DrawKey key);

}  // namespace vitrine
