#include "sampling/repetition_end.h"

namespace vitrine {

Status RepetitionEnd::check() const {
  if (least < 1 || most < least || most > kMostTokens)
    return make_error(ErrorCode::kInvalid,
                      "repetition_detection: found patterns of {} to {} tokens, allowed 1 to {}",
                      least, most, kMostTokens);
  if (count < 2 || count > kMostCount)
    return make_error(ErrorCode::kInvalid,
                      "repetition_detection: found a count of {}, allowed 2 to {}", count,
                      kMostCount);
  return Ok{};
}

bool RepetitionEnd::found(std::span<const std::int32_t> output) const {
  for (int size = least; size <= most; ++size) {
    const auto period = static_cast<std::size_t>(size);
    const std::size_t length = period * static_cast<std::size_t>(count);
    if (length > output.size()) return false;
    const auto end = output.last(length);
    std::size_t i = length;
    while (i > period && end[i - 1] == end[i - 1 - period]) --i;
    if (i == period) return true;
  }
  return false;
}

}  // namespace vitrine
