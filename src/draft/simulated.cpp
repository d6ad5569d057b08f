#include "draft/simulated.h"

#include <algorithm>

#include "base/philox.h"

namespace vitrine {

void KnownTexts::set(const std::string& scope, std::vector<std::int32_t> tokens) {
  std::lock_guard lock(mutex_);
  texts_[scope] = std::move(tokens);
}

std::vector<std::int32_t> KnownTexts::of(std::string_view scope) const {
  std::lock_guard lock(mutex_);
  const auto found = texts_.find(scope);
  return found == texts_.end() ? std::vector<std::int32_t>{} : found->second;
}

void KnownTexts::clear() {
  std::lock_guard lock(mutex_);
  texts_.clear();
}

void SimulatedSource::begin(std::string_view scope) {
  text_ = texts_.of(scope);
  coins_ = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : scope) coins_ = (coins_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
}

bool SimulatedSource::right_at(std::size_t place) const {
  const PhiloxCounter bits = philox4x32_10({static_cast<std::uint32_t>(place), 0, 0, 0}, coins_);
  return bits.a * 0x1p-32 < right_;
}

int SimulatedSource::draft(std::span<const std::int32_t> tokens, std::span<Guess> out) {
  const std::size_t known = tokens.size();
  if (known >= text_.size()) return 0;
  const std::size_t count = std::min(out.size(), text_.size() - known);
  double probability = 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t token = text_[known + i], other = token > 0 ? token - 1 : 1;
    probability *= right_;
    out[i] = {right_at(known + i) ? token : other, static_cast<float>(probability)};
  }
  return static_cast<int>(count);
}

}  // namespace vitrine
