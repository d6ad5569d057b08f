#include "draft/step_cost.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vitrine {
namespace {

// The first so many measurements of a size are averaged; after these a new one counts as much as the
// last of them did.
constexpr int kAveraged = 10;
// What changes with time (contexts grow, clocks fall) changes steps of all sizes: this part of what
// is new about a size goes to the others. Without it a size that is not run for long would be out of
// date.
constexpr double kDrift = 0.25;

}  // namespace

StepCost::StepCost(std::vector<int> sizes)
    : sizes_(std::move(sizes)),
      measured_(sizes_.size()),
      times_(sizes_.size()),
      fitted_(sizes_.size()) {
  VT_CHECK(!sizes_.empty() && sizes_[0] > 0 && std::ranges::is_sorted(sizes_));
  runs_.reserve(sizes_.size());
}

std::vector<int> StepCost::default_sizes(int most) {
  std::vector<int> sizes;
  for (int size = 1; size < most; size += std::max(1, size / 16 - 3)) sizes.push_back(size);
  sizes.push_back(std::max(1, most));
  return sizes;
}

int StepCost::index(int rows) const {
  const auto at = std::ranges::lower_bound(sizes_, rows);
  return static_cast<int>(std::min(at, sizes_.end() - 1) - sizes_.begin());
}

void StepCost::observe(int rows, double ns) {
  if (ns <= 0) return;
  const int size = index(rows);
  const bool settled = times_[size] == kAveraged;
  times_[size] = std::min(times_[size] + 1, kAveraged);
  double& mine = measured_[size];
  if (mine == 0) mine = ns;
  // A step that something held up (a page fault, a neighbour) says little.
  const double change = (std::clamp(ns / mine, 0.25, 4.0) - 1) / times_[size];
  mine *= 1 + change;
  if (settled)
    for (double& other : measured_)
      if (&other != &mine) other *= 1 + kDrift * change;
  largest_ = std::max(largest_, size);
  fit();
}

// The nearest values that do not fall (pool adjacent violators): neighbours in the wrong order become
// their mean.
void StepCost::fit() {
  runs_.clear();
  const int size = static_cast<int>(sizes_.size());
  for (int i = 0; i < size; ++i) {
    if (measured_[i] == 0) continue;
    Run run{measured_[i], 1, i};
    for (; !runs_.empty() && runs_.back().ns > run.ns; runs_.pop_back()) {
      const Run& before = runs_.back();
      const int sizes = before.sizes + run.sizes;
      run = {(before.ns * before.sizes + run.ns * run.sizes) / sizes, sizes, run.last};
    }
    runs_.push_back(run);
  }
  std::size_t run = 0;
  int low = -1, at = 0;  // the last size that was measured
  for (; at < size; ++at) {
    if (measured_[at] == 0) continue;
    while (runs_[run].last < at) ++run;
    fitted_[at] = runs_[run].ns;
    for (int i = low + 1; i < at; ++i) {
      const double from_size = low < 0 ? 0 : sizes_[low], from = low < 0 ? 0 : fitted_[low];
      fitted_[i] = from + (fitted_[at] - from) * (sizes_[i] - from_size) / (sizes_[at] - from_size);
    }
    low = at;
  }
  for (int i = low + 1; i < size; ++i) fitted_[i] = fitted_[low];
}

double StepCost::ns(int rows) const { return fitted_[index(rows)]; }

double StepCost::at_most(int rows) const {
  const int size = index(rows);
  return size <= largest_ ? fitted_[size] : fitted_[largest_] * sizes_[size] / sizes_[largest_];
}

}  // namespace vitrine
