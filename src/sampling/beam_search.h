// Beam search: of all texts that go on from a few, keep the few likeliest, again and again. The rules are those of
// HF transformers' generate(), with its ties settled. Numbers and tokens only: whose rows they are, and where K and V
// of a text lie, is the caller's to know (engine/beams.h).
//
// A text's sum is that of its tokens' log probabilities. Each step ranks every continuation of every live text by its
// sum; of equal ones that of the earlier text comes first, then the smaller token. With B texts side by side:
//   - a continuation that ends its text counts only among the first B. Its score is
//     sum / (tokens, the end token included) ^ length_penalty, and the B best by score are kept, in places;
//   - the first B that do not end are the live texts of the next step;
//   - it is over when all places are taken and, by early_stopping: kTrue: at once; kFalse: the best live text, with
//     the length it has now, does not beat the worst of them; kNever: the same with the greatest length that it could
//     reach, where longer is better (length_penalty > 0). At the greatest length every text ends.
//
// Diverse groups: the texts are split into groups that search one after the other in each step, with places of their
// own. A group pays diversity_penalty for a token, each time an earlier group's next live texts took it. At the end
// the best of all groups are returned.
//
// Nothing allocates after construction. Used by one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace vitrine {

enum class EarlyStopping { kFalse, kTrue, kNever };

struct BeamOptions {
  int beams = 1;     // texts side by side, over all groups
  int returned = 1;  // of these, so many are the answer
  int groups = 1;
  double length_penalty = 1, diversity_penalty = 0;
  EarlyStopping early_stopping = EarlyStopping::kFalse;

  static constexpr int kMostBeams = 128;
  static constexpr double kMostPenalty = 100;
  Status check() const;
  // How many of a row's best continuations can matter.
  int candidates() const { return groups == 1 ? beams : 2 * beams; }
};

// A continuation of a text by one token. A token of -1: the text is complete as it is.
struct BeamCandidate {
  std::int32_t token = -1;
  float logprob = 0;
  bool ends = false;
};

class BeamSearch {
 public:
  struct Finished {
    double score = 0;
    std::vector<std::int32_t> tokens;  // of the output, with the end token
    bool ended = false;           // by a token or as complete; false: it was as long as it may be
    std::int32_t end_token = -1;  // the last one, if that ended it
  };
  // A live text: its continuations, by descending log probability, and its output so far.
  struct Row {
    std::span<const BeamCandidate> candidates;
    std::span<const std::int32_t> output;
  };
  // A text of the next step: that of `parent` (among the live ones) and a token.
  struct Child {
    int parent = 0;
    std::int32_t token = 0;
    double sum = 0;
    int group = 0;
  };

  // The options have been checked; max_output > 0.
  BeamSearch(const BeamOptions& options, int max_output);

  // Live texts. At the beginning one for each group, without output.
  std::span<const Child> live() const { return live_; }
  // One step; `rows`: of each live text. Afterwards live() are their children.
  void step(std::span<const Row> rows);
  // No text is live any more, or those that are cannot matter.
  bool done() const { return live_.empty(); }
  // Ends what is live as if it were as long as it may be.
  void end_now(std::span<const Row> rows);

  // The answer so far, best first.
  std::span<const Finished* const> best() const { return best_; }
  const BeamOptions& options() const { return options_; }

 private:
  struct Item {
    double sum;
    int parent;
    BeamCandidate candidate;
  };
  struct Group {
    std::vector<Finished> places;  // best first, and a spare one at the end
    int taken = 0;
    bool over = false;
  };
  static bool before(const Item& a, const Item& b);
  void step_group(int g, std::span<const Row> rows);
  void finish(Group& group, double sum, const Row& row, const BeamCandidate& last);
  bool is_over(const Group& group, double best_sum) const;
  double penalized(double sum, int length) const;
  void sort_best();

  const BeamOptions options_;
  const int max_output_, size_;  // size_: texts of a group
  int length_ = 0;               // of the output of live texts
  std::vector<Group> groups_;
  std::vector<Child> live_, next_;
  std::vector<Item> items_;
  std::vector<std::int32_t> picked_;  // tokens of the earlier groups, in this step
  std::vector<const Finished*> best_;
};

}  // namespace vitrine
