// How long a step takes by its number of rows: c(R), measured while serving.
//
// A step reads all weights once whatever its rows, so on most machines c hardly grows at first and
// in proportion later; where it turns is what decides whether guesses are worth their rows.
#pragma once

#include <vector>

namespace vitrine {

class StepCost {
 public:
  // Steps are measured together by the numbers of rows they are padded to (ascending; more rows than
  // the last count as the last).
  explicit StepCost(std::vector<int> sizes);
  // 1, 2, ... 64, and then in steps of a sixteenth, for a backend that pads nothing.
  static std::vector<int> default_sizes(int most);

  void observe(int rows, double ns);
  bool known() const { return largest_ >= 0; }
  // Never falls as rows grow. Below the smallest size that was measured in proportion, between two on
  // the line, above the largest the same as there: what has not been tried is worth trying.
  double ns(int rows) const;
  // The same, but above the largest size that was measured it grows in proportion: the most that
  // trying may take.
  double at_most(int rows) const;

 private:
  struct Run {
    double ns;
    int sizes, last;
  };
  int index(int rows) const;
  void fit();

  std::vector<int> sizes_;
  std::vector<double> measured_;  // moving averages; 0: none yet
  std::vector<int> times_;        // that each was measured, up to where it stops to matter
  std::vector<double> fitted_;
  std::vector<Run> runs_;
  int largest_ = -1;  // that was measured
};

}  // namespace vitrine
