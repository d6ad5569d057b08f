#include "engine/pooling.h"
#include "base/utf8.h"

#include <algorithm>
#include <cmath>

namespace vitrine {

const char* pooling_name(Pooling pooling) { return pooling == Pooling::kMean ? "mean" : "last"; }

Result<Pooling> parse_pooling(std::string_view name) {
  if (name == "mean") return Pooling::kMean;
  if (name == "last") return Pooling::kLast;
  return make_error(ErrorCode::kInvalid, "found '{}', allowed mean, last", shortened(name));
}

Pooling default_pooling(const std::optional<std::string>& asked) {
  return asked == "last" ? Pooling::kLast : Pooling::kMean;
}

Pool::Pool(Pooling pooling, int width)
    : pooling_(pooling), sum_(static_cast<std::size_t>(width), 0.0) {}

void Pool::add(int position, std::span<const float> hidden) {
  if (position == 0 || pooling_ == Pooling::kLast) std::fill(sum_.begin(), sum_.end(), 0.0);
  for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += static_cast<double>(hidden[i]);
}

bool Pool::result(int tokens, std::span<float> out) const {
  const double scale = pooling_ == Pooling::kMean ? 1.0 / tokens : 1.0;
  for (std::size_t i = 0; i < sum_.size(); ++i) out[i] = static_cast<float>(sum_[i] * scale);
  return normalise(out);
}

bool normalise(std::span<float> vector) {
  double squares = 0;
  for (float x : vector) squares += static_cast<double>(x) * static_cast<double>(x);
  if (!std::isfinite(squares)) return false;
  if (squares == 0) return true;
  const double scale = 1.0 / std::sqrt(squares);
  for (float& x : vector) x = static_cast<float>(static_cast<double>(x) * scale);
  return true;
}

}  // namespace vitrine
