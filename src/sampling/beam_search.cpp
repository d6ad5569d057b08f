#include "sampling/beam_search.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace vitrine {
namespace {

Status within(const char* name, double value, double min, double max) {
  if (value >= min && value <= max) return Ok{};
  return make_error(ErrorCode::kInvalid, "{}: found {}, allowed {} to {}", name, value, min, max);
}

}  // namespace

Status BeamOptions::check() const {
  VT_RETURN_IF_ERROR(within("beams", beams, 1, kMostBeams));
  VT_RETURN_IF_ERROR(within("num_return", returned, 1, beams));
  VT_RETURN_IF_ERROR(within("beam_groups", groups, 1, beams));
  if (beams % groups != 0)
    return make_error(ErrorCode::kInvalid,
                      "beam_groups: found {}, allowed what divides beams, which is {}", groups,
                      beams);
  VT_RETURN_IF_ERROR(within("length_penalty", length_penalty, -kMostPenalty, kMostPenalty));
  VT_RETURN_IF_ERROR(within("diversity_penalty", diversity_penalty, 0, kMostPenalty));
  if (diversity_penalty > 0 && groups == 1)
    return make_error(ErrorCode::kInvalid,
                      "diversity_penalty: found {}, allowed only 0 with one group of beams",
                      diversity_penalty);
  return Ok{};
}

BeamSearch::BeamSearch(const BeamOptions& options, int max_output)
    : options_(options), max_output_(max_output), size_(options.beams / options.groups) {
  VT_CHECK(max_output > 0 && options.check().ok(), "{} tokens", max_output);
  groups_.resize(static_cast<std::size_t>(options.groups));
  const auto beams = static_cast<std::size_t>(options.beams);
  for (Group& g : groups_) {
    g.places.resize(static_cast<std::size_t>(size_) + 1);
    for (Finished& f : g.places) f.tokens.reserve(static_cast<std::size_t>(max_output));
  }
  live_.reserve(beams), next_.reserve(beams), picked_.reserve(beams), best_.reserve(beams);
  // A row's candidates: those that end stand beside as many that do not.
  items_.reserve(beams * 2 * static_cast<std::size_t>(options.candidates()));
  for (int g = 0; g < options.groups; ++g) live_.push_back({.group = g});
}

bool BeamSearch::before(const Item& a, const Item& b) {
  if (a.sum != b.sum) return a.sum > b.sum;
  if (a.parent != b.parent) return a.parent < b.parent;
  return a.candidate.token < b.candidate.token;
}

double BeamSearch::penalized(double sum, int length) const {
  return sum / std::pow(std::max(length, 1), options_.length_penalty);
}

void BeamSearch::step(std::span<const Row> rows) {
  VT_CHECK(rows.size() == live_.size(), "{} rows of {} texts", rows.size(), live_.size());
  next_.clear(), picked_.clear();
  for (int g = 0; g < options_.groups; ++g)
    if (!groups_[g].over) step_group(g, rows);
  live_.swap(next_);
  ++length_;
  sort_best();
}

void BeamSearch::step_group(int g, std::span<const Row> rows) {
  Group& group = groups_[g];
  items_.clear();
  for (std::size_t i = 0; i < live_.size(); ++i) {
    if (live_[i].group != g) continue;
    for (const BeamCandidate& c : rows[i].candidates) {
      const auto earlier = std::count(picked_.begin(), picked_.end(), c.token);
      const double paid = options_.diversity_penalty * static_cast<double>(earlier);
      items_.push_back({live_[i].sum + c.logprob - paid, static_cast<int>(i), c});
    }
  }
  const bool longest = length_ + 1 >= max_output_;
  const std::size_t first = next_.size();
  const auto after = [](const Item& a, const Item& b) { return before(b, a); };
  std::make_heap(items_.begin(), items_.end(), after);
  int rank = 0;
  for (auto end = items_.end(); end != items_.begin(); ++rank) {
    const int alive = static_cast<int>(next_.size() - first);
    if (rank >= size_ && (alive == size_ || longest)) break;
    std::pop_heap(items_.begin(), end, after);
    const Item& item = *--end;
    if (!item.candidate.ends && !longest) {
      if (alive < size_) next_.push_back({item.parent, item.candidate.token, item.sum, g});
    } else if (rank < size_) {
      finish(group, item.sum, rows[item.parent], item.candidate);
      if (!item.candidate.ends) picked_.push_back(item.candidate.token);
    }
  }
  const bool none = next_.size() == first;
  group.over = none || is_over(group, next_[first].sum);
  if (group.over) next_.resize(first);
  for (std::size_t i = first; i < next_.size(); ++i) picked_.push_back(next_[i].token);
}

void BeamSearch::finish(Group& group, double sum, const Row& row, const BeamCandidate& last) {
  const bool grows = last.token >= 0;
  const double score = penalized(sum, static_cast<int>(row.output.size()) + grows);
  // Of equal ones the earlier stays.
  const auto end = group.places.begin() + group.taken;
  const auto at = std::upper_bound(group.places.begin(), end, score,
                                   [](double s, const Finished& f) { return s > f.score; });
  if (at - group.places.begin() >= size_) return;
  Finished& place = *end;  // the spare one
  place.score = score;
  place.tokens.assign(row.output.begin(), row.output.end());
  if (grows) place.tokens.push_back(last.token);
  place.ended = last.ends;
  place.end_token = last.ends ? last.token : -1;
  std::rotate(at, end, end + 1);
  group.taken = std::min(group.taken + 1, size_);
}

bool BeamSearch::is_over(const Group& group, double best_sum) const {
  if (group.taken < size_) return false;
  if (options_.early_stopping == EarlyStopping::kTrue) return true;
  const bool hopes =
      options_.early_stopping == EarlyStopping::kNever && options_.length_penalty > 0;
  const double possible = penalized(best_sum, hopes ? max_output_ : length_ + 1);
  return possible <= group.places[static_cast<std::size_t>(size_) - 1].score;
}

void BeamSearch::end_now(std::span<const Row> rows) {
  for (std::size_t i = 0; i < live_.size(); ++i)
    if (!rows[i].output.empty()) finish(groups_[live_[i].group], live_[i].sum, rows[i], {});
  live_.clear();
  sort_best();
}

// Equal ones stay in the order of groups and places.
void BeamSearch::sort_best() {
  best_.clear();
  for (const Group& g : groups_)
    for (int i = 0; i < g.taken; ++i) {
      const auto at = std::upper_bound(
          best_.begin(), best_.end(), &g.places[i],
          [](const Finished* a, const Finished* b) { return a->score > b->score; });
      best_.insert(at, &g.places[i]);
    }
  if (best_.size() > static_cast<std::size_t>(options_.returned))
    best_.resize(static_cast<std::size_t>(options_.returned));
}

}  // namespace vitrine
