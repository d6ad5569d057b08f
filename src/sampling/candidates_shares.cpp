// What a set of candidates is as a distribution, and bans. Sums are of integers, so they do not depend
// on the order of the candidates.
#include "sampling/candidates.h"

#include <cmath>

namespace vitrine {

// A sparse set: `buckets` of a token says where in the list it would be, and the list who is there.
void Candidates::index() {
  if (!listed_) return;
  for (std::size_t i = 0; i < count_; ++i)
    scratch_.buckets[static_cast<std::size_t>(items()[i].id)] = static_cast<std::int32_t>(i);
}

float* Candidates::find(std::int32_t id) {
  const auto at = static_cast<std::size_t>(id);
  if (at >= scratch_.buckets.size()) return nullptr;
  if (!listed_) return at < count_ ? &scratch_.logits[at] : nullptr;
  const auto place = static_cast<std::size_t>(scratch_.buckets[at]);
  return place < count_ && items()[place].id == id ? &items()[place].logit : nullptr;
}

void Candidates::finish_drop(const Candidate& best) {
  refresh_max();
  if (std::isinf(max_)) {
    *find(best.id) = best.logit;
    refresh_max();
  }
  if (listed_) keep_within(std::numeric_limits<double>::max());  // drops what is masked
}

bool Candidates::keep_only(std::int32_t id) {
  const auto at = static_cast<std::size_t>(id);
  const float* here = nullptr;
  if (listed_) {
    index();
    here = find(id);
  }
  // While a list, what was dense says what was not masked before the first cut.
  if (here == nullptr && (at >= dense_.size() || std::isinf(dense_[at]) || dropped_)) return false;
  scratch_.items[0] = {max_, id, 0};
  count_ = 1;
  listed_ = true;
  weighed_ = false;
  return true;
}

std::size_t Candidates::unmasked() const {
  std::size_t n = 0;
  each_logit([&](float) { ++n; });
  return n;
}

std::uint64_t Candidates::total() {
  weigh();
  return total_;
}

double Candidates::share(std::int32_t id) {
  weigh();
  const auto all = static_cast<double>(total_);
  if (!listed_)
    return static_cast<double>(weight(nats(dense_[static_cast<std::size_t>(id)]))) / all;
  for (const Candidate& c : items())
    if (c.id == id) return static_cast<double>(c.weight) / all;
  return 0;
}

// The best has the probability kWeightOne / total.
double Candidates::entropy() {
  const double mean = mean_nats();
  return mean + std::log(static_cast<double>(total_) / static_cast<double>(kWeightOne));
}

void Candidates::keep_share(double p) {
  weigh();
  const double least = p * static_cast<double>(total_) / static_cast<double>(kWeightOne);
  keep_within(std::max(0.0, -std::log(least)));
}

// The distances are rounded to parts of the greatest one: the squares of kMaxVocab parts of at most
// 2^21 sum below 2^63.
double Candidates::deviation() const {
  double most = 0;
  each_logit([&](float logit) { most = std::max(most, nats(logit)); });
  if (most == 0) return 0;
  const double part = most * 0x1p-21;
  std::uint64_t n = 0, sum = 0, squares = 0;
  each_logit([&](float logit) {
    const auto parts = static_cast<std::uint64_t>(std::floor(nats(logit) / part + 0.5));
    ++n, sum += parts, squares += parts * parts;
  });
  const double count = static_cast<double>(n), mean = static_cast<double>(sum) / count;
  return part * std::sqrt(std::max(0.0, static_cast<double>(squares) / count - mean * mean));
}

}  // namespace vitrine
