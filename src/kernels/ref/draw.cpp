// The draw by its definition: all candidates in their order, each cut a prefix of it, then the race
// of those that are left.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/ref/backend.h"

namespace vitrine::ref {
namespace {

struct Racer {
  float logit;
  std::int32_t id;
};

DrawnRow draw_row(const DrawRow& row, const float* logits, std::int64_t V) {
  std::vector<Racer> left;
  for (std::int64_t i = 0; i < V; ++i) {
    if (std::isnan(logits[i])) return {0, 1};
    if (std::isinf(logits[i]) && logits[i] < 0) continue;
    left.push_back(
        {std::min(logits[i], std::numeric_limits<float>::max()), static_cast<std::int32_t>(i)});
  }
  if (left.empty()) return {0, 2};
  std::stable_sort(left.begin(), left.end(),
                   [](const Racer& a, const Racer& b) { return a.logit > b.logit; });
  if (row.top_k > 0) left.resize(std::min(left.size(), static_cast<std::size_t>(row.top_k)));
  if (row.top_k == 1) return {left[0].id, 0};

  const double max = left[0].logit;
  const auto nats = [&](const Racer& r) { return (max - r.logit) * row.scale; };
  if (row.top_p < 1) {
    std::uint64_t total = 0, sum = 0;
    for (const Racer& r : left) total += weight(nats(r));
    const auto all = static_cast<double>(total), share = std::ceil(row.top_p * all);
    const std::uint64_t target = share < all ? static_cast<std::uint64_t>(share) : total;
    std::size_t n = 0;
    do sum += weight(nats(left[n++]));
    while (sum < target);
    left.resize(n);
  }
  std::erase_if(left, [&](const Racer& r) { return nats(r) > row.max_nats; });

  Leader leader;
  for (const Racer& r : left) {
    const std::uint64_t w = weight(nats(r));
    if (w == 0) continue;
    const double noise = id_noise(row.key, block_noise(row.key, r.id / kRaceBlock), r.id);
    leader = ahead(leader, {noise / static_cast<double>(w), r.logit, r.id});
  }
  return {leader.id, 0};
}

}  // namespace

void RefBackend::draw_(DrawnRow* drawn, Tensor last, const DrawRow* rows, Tensor logits, bool) {
  const std::int64_t V = logits.dim(1);
  for (std::int64_t m = 0; m < logits.dim(0); ++m) {
    if (rows[m].slot < 0) continue;
    drawn[m] = draw_row(rows[m], logits.f32() + m * V, V);
    last.i32()[rows[m].slot] = drawn[m].token;
  }
}

}  // namespace vitrine::ref
