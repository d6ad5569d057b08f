#include "sampling/candidates.h"

#include <immintrin.h>

#include "base/check.h"
#include "sampling/logprobs.h"
#include "sampling/race.h"
#include "sampling/weight_sum.h"

namespace vitrine {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();
constexpr float kMost = std::numeric_limits<float>::max();

// Buckets of distances in nats, for the histogram: 32 to the nat, the last one for all from 32 nats
// on (which have no weight).
constexpr double kBucketsPerNat = 32;
constexpr std::size_t kBuckets = 32 * 32 + 1;

std::int32_t bucket_of(double distance) {
  return static_cast<std::int32_t>(capped(distance, 32.0) * kBucketsPerNat);
}

bool before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

std::uint64_t sum_weights(std::span<const Candidate> items) {
  std::uint64_t sum = 0;
  for (const Candidate& c : items) sum += c.weight;
  return sum;
}

// The length of the shortest prefix of the order `less` whose weights reach `target`; that prefix
// is moved to the front. Quickselect by weight: linear on average.
template <typename Less>
std::size_t select_prefix(std::span<Candidate> items, std::uint64_t target, Less less) {
  constexpr std::size_t kSortAtOnce = 32;
  std::size_t low = 0, high = items.size();
  std::uint64_t below = 0;  // the weight of items[0, low)
  while (high - low > kSortAtOnce) {
    const std::size_t middle = low + (high - low) / 2;
    const auto begin = items.begin();
    std::nth_element(begin + low, begin + middle, begin + high, less);
    const std::uint64_t half = sum_weights(items.subspan(low, middle + 1 - low));
    if (below + half >= target) {
      high = middle + 1;
    } else {
      below += half;
      low = middle + 1;
    }
  }
  std::sort(items.begin() + low, items.begin() + high, less);
  while (low < high && below < target) below += items[low++].weight;
  return low;
}

// Lists the dense candidates i that `keep`. Branch-free, because a mispredicted branch costs more
// than a store. `out` has room for one more than are kept.
template <typename Keep>
std::size_t gather(std::span<const float> logits, const std::uint64_t* weights, Candidate* out,
                   Keep keep) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    out[n] = {logits[i], static_cast<std::int32_t>(i), weights[i]};
    n += keep(i) ? 1 : 0;
  }
  return n;
}

// Calls f(i) for every i with logits[i] > threshold, ascending; f may raise the threshold, and
// stops all by returning false. Usually few pass, so eight are compared at a time.
template <typename F>
void for_each_above(std::span<const float> logits, const float& threshold, F f) {
  std::size_t i = 0;
  for (; i + 8 <= logits.size(); i += 8) {
    const __m256 above =
        _mm256_cmp_ps(_mm256_loadu_ps(&logits[i]), _mm256_set1_ps(threshold), _CMP_GT_OQ);
    for (auto mask = static_cast<unsigned>(_mm256_movemask_ps(above)); mask != 0;
         mask &= mask - 1) {
      const std::size_t at = i + static_cast<std::size_t>(std::countr_zero(mask));
      if (logits[at] > threshold && !f(at)) return;
    }
  }
  for (; i < logits.size(); ++i)
    if (logits[i] > threshold && !f(i)) return;
}

// The k best of dense logits. Ids ascend, so one that only equals the k-th best so far comes after
// it. On average about k * ln(V / k) tokens pass the threshold; at worst the work is still linear.
std::size_t gather_best(std::span<const float> logits, std::size_t k, Candidate* out) {
  const std::size_t room = std::min(logits.size(), 2 * k + 64);
  float threshold = kMasked;
  std::size_t n = 0;
  const auto shrink = [&] {
    if (n <= k) return;
    std::nth_element(out, out + (k - 1), out + n, before);
    threshold = out[k - 1].logit;
    n = k;
  };
  for_each_above(logits, threshold, [&](std::size_t i) {
    if (n == room) shrink();
    if (logits[i] > threshold) out[n++] = {logits[i], static_cast<std::int32_t>(i), 0};
    return true;
  });
  shrink();
  return n;
}

// Dense weights. Locals only: the compiler must see that no store changes what the loop reads.
void weigh_all(std::span<const float> logits, double max, double scale, std::uint64_t* weights) {
  for (std::size_t i = 0; i < logits.size(); ++i) weights[i] = weight((max - logits[i]) * scale);
}

}  // namespace

Scratch::Scratch(std::size_t vocab)
    : logits(vocab),
      allowed(vocab),
      weights(vocab),
      items(vocab + 1),
      buckets(vocab),
      sums(kBuckets) {
  VT_CHECK(vocab <= kMaxVocab, "vocabulary of {}", vocab);
}

Candidates::Candidates(std::span<const float> logits, float max, Scratch& scratch)
    : scratch_(scratch), dense_(logits), count_(logits.size()), max_(std::min(max, kMost)) {
  VT_CHECK(logits.size() <= scratch.logits.size(), "{} logits, scratch for {}", logits.size(),
           scratch.logits.size());
  if (max > kMost) {
    own();
    for (float& x : std::span(scratch_.logits).first(count_)) x = std::min(x, kMost);
  }
}

void Candidates::own() {
  const auto scaled = [&](float x) {
    if (scale_ == 1 || x == kMasked) return x;
    return static_cast<float>(std::clamp<double>(x * scale_, -kMost, kMost));
  };
  if (listed_) {
    for (Candidate& c : items()) c.logit = scaled(c.logit);
  } else {
    for (std::size_t i = 0; i < count_; ++i) scratch_.logits[i] = scaled(dense_[i]);
    dense_ = {scratch_.logits.data(), count_};
  }
  scale_ = 1;
  weighed_ = false;
}

void Candidates::refresh_max() {
  float max = kMasked;
  if (listed_)
    for (const Candidate& c : items()) max = std::max(max, c.logit);
  else
    max = scan_logits(dense_).max;
  if (max != max_) weighed_ = false;
  max_ = max;
}

void Candidates::weigh() {
  if (weighed_) return;
  total_ = listed_ ? weigh_list() : sum_weights(dense_, max_, scale_);
  weighed_ = true;
}

// In blocks, through arrays: the compiler does not vectorise over the fields of a struct.
std::uint64_t Candidates::weigh_list() {
  constexpr std::size_t kBlock = 64;
  double distance[kBlock] = {};
  std::uint64_t weights[kBlock];
  std::uint64_t total = 0;
  for (std::size_t start = 0; start < count_; start += kBlock) {
    const std::span<Candidate> block = items().subspan(start, std::min(kBlock, count_ - start));
    for (std::size_t i = 0; i < block.size(); ++i) distance[i] = nats(block[i].logit);
    for (std::size_t i = 0; i < kBlock; ++i) weights[i] = weight(distance[i]);
    for (std::size_t i = 0; i < block.size(); ++i) total += block[i].weight = weights[i];
  }
  return total;
}

void Candidates::list() {
  if (listed_) {
    keep_within(std::numeric_limits<double>::max());  // drops what is masked
  } else {
    weigh_all(dense_, max_, scale_, scratch_.weights.data());
    count_ = gather(dense_, scratch_.weights.data(), scratch_.items.data(),
                    [&](std::size_t i) { return dense_[i] > kMasked; });
    listed_ = true;
  }
  weigh();
}

void Candidates::keep_first(std::size_t k) {
  if (k >= count_) return;
  if (listed_) {
    std::nth_element(items().begin(), items().begin() + (k - 1), items().end(), before);
    count_ = k;
  } else if (k == 1) {
    for_each_above(dense_, std::nextafter(max_, kMasked), [&](std::size_t i) {
      scratch_.items[0] = {max_, static_cast<std::int32_t>(i), 0};
      return false;
    });
    count_ = 1;
  } else {
    count_ = gather_best(dense_, k, scratch_.items.data());
  }
  listed_ = true;
  weighed_ = false;
}

std::span<const Candidate> Candidates::sorted_first(std::size_t k) {
  keep_first(k);
  keep_within(std::numeric_limits<double>::max());  // drops what is masked
  std::sort(items().begin(), items().end(), before);
  weigh();
  return items();
}

std::span<const Candidate> Candidates::best(std::size_t k) {
  std::size_t n = std::min(k, count_);
  if (!listed_)
    n = gather_best(dense_, n, scratch_.items.data());
  else if (n < count_)
    std::nth_element(items().begin(), items().begin() + n, items().end(), before);
  const std::span<Candidate> out(scratch_.items.data(), n);
  std::sort(out.begin(), out.end(), before);
  while (n > 0 && out[n - 1].logit == kMasked) --n;
  return out.first(n);
}

void Candidates::keep_within(double limit) {
  const auto keep = [this, limit](float logit) { return nats(logit) <= limit; };
  if (listed_) {
    const auto end = std::partition(items().begin(), items().end(),
                                    [&](const Candidate& c) { return keep(c.logit); });
    count_ = static_cast<std::size_t>(end - items().begin());
  } else {
    // A threshold that is certainly below what is kept; the exact definition then decides.
    const auto around =
        static_cast<float>(std::max<double>(max_ - limit / scale_ * 1.000001, -kMost));
    const float threshold = std::nextafter(around - std::fabs(around) * 1e-6f, kMasked);
    std::size_t n = 0;
    for_each_above(dense_, threshold, [&](std::size_t i) {
      if (keep(dense_[i])) scratch_.items[n++] = {dense_[i], static_cast<std::int32_t>(i), 0};
      return true;
    });
    count_ = n;
  }
  listed_ = true;
  weighed_ = false;
}

void Candidates::keep_mass(double mass, double centre) {
  weigh();
  const double target = std::ceil(mass * static_cast<double>(total_));
  const double most = static_cast<double>(total_);
  count_ = reach(target >= most ? total_ : std::max<std::uint64_t>(1, target), centre);
  refresh_max();
  total_ = sum_weights(items());
}

double Candidates::mean_nats() {
  weigh();
  // Each term is at most 2^43 / e and rounded to an integer: the sum does not depend on its order.
  std::uint64_t sum = 0;
  const auto add = [&](float logit, std::uint64_t w) {
    if (w > 0)
      sum += static_cast<std::uint64_t>(std::floor(static_cast<double>(w) * nats(logit) + 0.5));
  };
  if (listed_)
    for (const Candidate& c : items()) add(c.logit, c.weight);
  else
    for (const float x : dense_) add(x, weight(nats(x)));
  return static_cast<double>(sum) / static_cast<double>(total_);
}

std::int32_t Candidates::draw(const DrawKey& key) {
  if (!listed_) return race_all(dense_, max_, scale_, key).id;
  if (count_ == 1) return scratch_.items[0].id;
  weigh();
  return race_some(items(), key).id;
}

void Candidates::sum_buckets(double centre) {
  std::fill(scratch_.sums.begin(), scratch_.sums.end(), 0);
  if (listed_) {
    for (const Candidate& c : items())
      scratch_.sums[bucket_of(std::fabs(nats(c.logit) - centre))] += c.weight;
    return;
  }
  const double max = max_, scale = scale_;
  weigh_all(dense_, max, scale, scratch_.weights.data());
  std::int32_t* const buckets = scratch_.buckets.data();
  for (std::size_t i = 0; i < count_; ++i)
    buckets[i] = bucket_of(std::fabs((max - dense_[i]) * scale - centre));
  for (std::size_t i = 0; i < count_; ++i) scratch_.sums[buckets[i]] += scratch_.weights[i];
}

// The usual case: lists the dense candidates near the best, if they are few and their weights reach
// `target`; no other candidate matters then.
void Candidates::list_near(std::uint64_t target) {
  constexpr double kNats = 12;
  constexpr std::size_t kMany = 4096;
  const auto threshold = static_cast<float>(std::max<double>(max_ - kNats / scale_, -kMost));
  std::size_t n = 0;
  for_each_above(dense_, threshold, [&](std::size_t i) {
    scratch_.items[n++] = {dense_[i], static_cast<std::int32_t>(i), 0};
    return n < kMany;
  });
  if (n == kMany || n == 0) return;
  const std::size_t all = count_;
  count_ = n;
  listed_ = weigh_list() >= target;
  if (!listed_) count_ = all;
}

// Lists the candidates of the bucket `crossing` after all nearer ones, and returns how many nearer
// ones there are.
std::size_t Candidates::list_buckets(std::size_t crossing, double centre) {
  const auto wanted = static_cast<std::int32_t>(crossing);
  std::size_t near = 0;
  if (listed_) {
    const auto bucket = [&](const Candidate& c) {
      return bucket_of(std::fabs(nats(c.logit) - centre));
    };
    auto at = std::partition(items().begin(), items().end(),
                             [&](const Candidate& c) { return bucket(c) < wanted; });
    near = static_cast<std::size_t>(at - items().begin());
    at = std::partition(at, items().end(), [&](const Candidate& c) { return bucket(c) == wanted; });
    count_ = static_cast<std::size_t>(at - items().begin());
    return near;
  }
  const std::int32_t* const buckets = scratch_.buckets.data();
  const std::uint64_t* const weights = scratch_.weights.data();
  Candidate* const out = scratch_.items.data();
  near = gather(dense_, weights, out, [&](std::size_t i) { return buckets[i] < wanted; });
  count_ = near +
           gather(dense_, weights, out + near, [&](std::size_t i) { return buckets[i] == wanted; });
  listed_ = true;
  return near;
}

std::size_t Candidates::select(std::size_t first, std::uint64_t target, double centre) {
  const std::span<Candidate> rest = items().subspan(first);
  if (centre == 0) return first + select_prefix(rest, target, before);
  const auto nearer = [this, centre](const Candidate& a, const Candidate& b) {
    const double x = std::fabs(nats(a.logit) - centre), y = std::fabs(nats(b.logit) - centre);
    return x != y ? x < y : before(a, b);
  };
  return first + select_prefix(rest, target, nearer);
}

// Lists, by distance from `centre` and then in the fixed order, the shortest prefix whose weights
// reach `target`, and returns its length.
std::size_t Candidates::reach(std::uint64_t target, double centre) {
  constexpr std::size_t kFewEnough = 256;
  if (!listed_ && centre == 0) list_near(target);
  if (listed_ && count_ <= kFewEnough) return select(0, target, centre);
  sum_buckets(centre);
  std::size_t crossing = 0;
  while (crossing < kBuckets && scratch_.sums[crossing] < target)
    target -= scratch_.sums[crossing++];
  VT_CHECK(crossing < kBuckets, "the weights fall short of the target by {}", target);
  const std::size_t near = list_buckets(crossing, centre);
  return select(near, target, centre);
}

}  // namespace vitrine
