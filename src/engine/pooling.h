// One vector for a text: the hidden states of its tokens, pooled and brought to length 1.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vitrine {

enum class Pooling {
  kMean,  // of all tokens
  kLast,  // the last token's
};
const char* pooling_name(Pooling pooling);
// An error names what was found and what is allowed.
Result<Pooling> parse_pooling(std::string_view name);
// What to use when the request does not say: what the model's files ask for ("mean", "last"), else
// the mean. The last state of a model that was not trained for embeddings says what comes next rather
// than what the text is about.
Pooling default_pooling(const std::optional<std::string>& asked);

// Takes a sequence's rows in the order of positions. The sum is in double precision and does not
// depend on how the rows were cut into chunks.
class Pool {
 public:
  Pool() = default;
  Pool(Pooling pooling, int width);
  // Position 0 begins anew: a preempted sequence is computed again.
  void add(int position, std::span<const float> hidden);
  // Over `tokens` rows, normalised; false when it is not finite. A vector of zeros stays one.
  bool result(int tokens, std::span<float> out) const;

 private:
  Pooling pooling_ = Pooling::kMean;
  std::vector<double> sum_;
};

// To length 1; false when that cannot be because a value is not finite.
bool normalise(std::span<float> vector);

}  // namespace vitrine
