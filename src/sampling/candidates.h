// The tokens that may still be drawn, with their logits: what the transforms of a chain edit and
// cut.
//
// The order of candidates, wherever one is needed (cuts, ties, drawing), is fixed: descending
// logit, then ascending id. Nothing is sorted in full: a set starts as a view of the model's logits
// (dense), becomes a list at the first cut, and is partitioned only around the place in the order
// that a cut needs. That place is usually among the few tokens near the best; otherwise a histogram
// finds its bucket and a quickselect the place in it. Weights are integers (base/draw_weight.h), so
// the outcome is the same as that of a full sort. A draw is a race (base/draw_race.h), in any order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/draw_race.h"
#include "base/draw_weight.h"

namespace vitrine {

struct Candidate {
  float logit;
  std::int32_t id;
  std::uint64_t weight;  // valid after Candidates::weigh
};

// Buffers for one sampling thread, for vocabularies up to the size given.
struct Scratch {
  explicit Scratch(std::size_t vocab);

  std::vector<float> logits;           // [V], edited logits
  std::vector<float> allowed;          // [V], logits without the banned tokens
  std::vector<std::uint64_t> weights;  // [V], of dense candidates, for the histogram
  std::vector<Candidate> items;        // [V + 1]; gathering writes one past what it keeps
  std::vector<std::int32_t> buckets;   // [V]
  std::vector<std::uint64_t> sums;     // weight by bucket
};

class Candidates {
 public:
  // `logits` without NaN, the greatest of them `max` > -inf. Logits of +inf count as FLT_MAX; those
  // of -inf are masked: no edit revives them and they have no weight. The view must outlive this.
  Candidates(std::span<const float> logits, float max, Scratch& scratch);

  std::size_t size() const { return count_; }
  std::size_t unmasked() const;
  // How far a logit lies below the best one.
  double nats(float logit) const { return (static_cast<double>(max_) - logit) * scale_; }

  // logit = f(logit, entry) for every candidate in `table` (entries() with .id, and find(id)).
  template <typename Table, typename F>
  void edit(const Table& table, F f);
  // logit = f(probability) for every candidate that is not masked.
  template <typename F>
  void remake(F f);

  // Masks the tokens that `each` names: each(f) calls f(id) for each of them. Where that
  // would be all, the best one stays.
  template <typename Each>
  void drop(Each each);

  // Multiplies all logits by `factor`, > 0. The order does not change, so this is applied lazily.
  void scale(double factor) {
    scale_ *= factor;
    weighed_ = false;
  }

  // Each keeps at least one candidate.
  void keep_first(std::size_t k);  // the first k of the order, k > 0
  void keep_within(double nats);   // those at most `nats` below the best
  // The fewest whose probabilities sum to at least `mass`, taken by ascending distance from
  // `centre` in nats below the best, then in the fixed order. At centre 0 that is the fixed order
  // itself.
  void keep_mass(double mass, double centre = 0);
  // This token alone, also if a cut has dropped it. False, and nothing changes, where it is masked.
  bool keep_only(std::int32_t id);
  // Those with at least this probability, and the best.
  void keep_share(double p);
  // Those that keep(candidate), weighed; all stay when it keeps none.
  template <typename Keep>
  void keep_if(Keep keep);

  // The expectation of "nats below the best": the entropy less the surprise of the best.
  double mean_nats();
  double entropy();               // in nats
  double deviation() const;       // the standard deviation of the logits, in nats
  std::uint64_t total();          // the sum of the weights
  double share(std::int32_t id);  // the probability of a token; 0 when it is none of these

  // f(id, logit, weight) for every candidate, with its logit as it is now; those that are masked have
  // -inf.
  template <typename F>
  void for_each(F f);

  // Cuts to the first k that are not masked and returns them in order, weighed.
  std::span<const Candidate> sorted_first(std::size_t k);
  // The same without cutting and without weights; valid until the next call.
  std::span<const Candidate> best(std::size_t k);
  // The token that wins the race of this key.
  std::int32_t draw(const DrawKey& key);

 private:
  std::span<Candidate> items() { return {scratch_.items.data(), count_}; }
  std::span<const Candidate> items() const { return {scratch_.items.data(), count_}; }
  template <typename F>
  void each_logit(F f) const;  // of those that are not masked

  void own();    // before an edit: copies the view, applies the pending factor
  void index();  // of a list: find() works until the list changes
  float* find(std::int32_t id);
  void finish_drop(const Candidate& best);
  void refresh_max();  // after edits and after cuts that may have dropped the best
  void weigh();        // brings total_ up to date, and the weights of a list
  std::uint64_t weigh_list();
  void list();  // those that are not masked, weighed
  void list_near(std::uint64_t target);
  void sum_buckets(double centre);
  std::size_t list_buckets(std::size_t crossing, double centre);
  std::size_t select(std::size_t first, std::uint64_t target, double centre);
  std::size_t reach(std::uint64_t target, double centre);

  Scratch& scratch_;
  std::span<const float> dense_;  // while dense: all candidates, by id
  bool dropped_ = false;          // some were masked in the list, which `dense_` does not say
  bool listed_ = false;           // the candidates are scratch_.items[0, count_)
  std::size_t count_;
  float max_;  // of the candidates, finite
  double scale_ = 1;
  bool weighed_ = false;
  std::uint64_t total_ = 0;
};

template <typename F>
void Candidates::for_each(F f) {
  weigh();
  const auto scaled = [&](float x) {
    return scale_ == 1 || std::isinf(x) ? x : static_cast<float>(x * scale_);
  };
  if (listed_) {
    for (const Candidate& c : items()) f(c.id, scaled(c.logit), c.weight);
  } else {
    for (std::size_t i = 0; i < count_; ++i)
      f(static_cast<std::int32_t>(i), scaled(dense_[i]), weight(nats(dense_[i])));
  }
}

template <typename F>
void Candidates::each_logit(F f) const {
  const auto visit = [&](float logit) {
    if (!std::isinf(logit)) f(logit);
  };
  if (listed_)
    for (const Candidate& c : items()) visit(c.logit);
  else
    for (const float logit : dense_) visit(logit);
}

template <typename F>
void Candidates::remake(F f) {
  weigh();
  const auto made = [&](float logit, std::uint64_t w) {
    if (std::isinf(logit)) return logit;
    return static_cast<float>(f(static_cast<double>(w) / static_cast<double>(total_)));
  };
  if (listed_) {
    for (Candidate& c : items()) c.logit = made(c.logit, c.weight);
  } else {
    for (std::size_t i = 0; i < count_; ++i)
      scratch_.logits[i] = made(dense_[i], weight(nats(dense_[i])));
    dense_ = {scratch_.logits.data(), count_};
  }
  scale_ = 1;
  weighed_ = false;
  refresh_max();
}

template <typename Each>
void Candidates::drop(Each each) {
  std::optional<Candidate> first;
  each([&](std::int32_t id) {
    if (!first) own(), first = best(1).front(), index(), dropped_ |= listed_;
    if (float* logit = find(id)) *logit = -std::numeric_limits<float>::infinity();
  });
  if (first) finish_drop(*first);
}

template <typename Keep>
void Candidates::keep_if(Keep keep) {
  list();
  const auto end = std::partition(items().begin(), items().end(), keep);
  if (end == items().begin()) return;
  count_ = static_cast<std::size_t>(end - items().begin());
  weighed_ = false;
  refresh_max();
}

template <typename Table, typename F>
void Candidates::edit(const Table& table, F f) {
  const auto apply = [&](float& logit, const auto& entry) {
    constexpr double kMost = std::numeric_limits<float>::max();
    if (std::isinf(logit)) return;
    const double edited = f(static_cast<double>(logit), entry);
    logit = static_cast<float>(std::clamp(edited, -kMost, kMost));
  };
  own();
  if (listed_) {
    for (Candidate& c : items())
      if (const auto* entry = table.find(c.id)) apply(c.logit, *entry);
  } else {
    for (const auto& entry : table.entries())
      if (static_cast<std::size_t>(entry.id) < count_) apply(scratch_.logits[entry.id], entry);
  }
  refresh_max();
}

}  // namespace vitrine
