#include "server/logit_rows.h"

namespace vitrine {

LogitRow LogitRows::find(std::uint64_t text, int row) {
  std::lock_guard lock(mutex_);
  const auto it = rows_.find({text, row});
  if (it == rows_.end()) return nullptr;
  order_.splice(order_.begin(), order_, it->second.used);
  return it->second.logits;
}

void LogitRows::add(std::uint64_t text, int row, LogitRow logits) {
  const std::size_t size = logits->size() * sizeof(float);
  std::lock_guard lock(mutex_);
  if (size > most_bytes_ || rows_.contains({text, row})) return;
  while (bytes_ + size > most_bytes_) {
    const auto last = rows_.find(order_.back());
    bytes_ -= last->second.logits->size() * sizeof(float);
    rows_.erase(last);
    order_.pop_back();
  }
  // Both or, for lack of memory, neither.
  std::list<Key> used{{text, row}};
  rows_.try_emplace({text, row}, Entry{std::move(logits), used.begin()});
  order_.splice(order_.begin(), used);
  bytes_ += size;
}

void LogitRows::forget(std::uint64_t text) {
  std::lock_guard lock(mutex_);
  for (auto it = rows_.lower_bound({text, 0}); it != rows_.end() && it->first.first == text;) {
    bytes_ -= it->second.logits->size() * sizeof(float);
    order_.erase(it->second.used);
    it = rows_.erase(it);
  }
}

std::size_t LogitRows::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace vitrine
