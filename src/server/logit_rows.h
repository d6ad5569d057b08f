// Rows of logits that were computed again (replay.h): those that were used last. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace vitrine {

using LogitRow = std::shared_ptr<const std::vector<float>>;

class LogitRows {
 public:
  static constexpr std::size_t kMostBytes = 64 << 20;

  explicit LogitRows(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}
  LogitRow find(std::uint64_t text, int row);  // null: it is not there
  void add(std::uint64_t text, int row, LogitRow logits);
  void forget(std::uint64_t text);
  std::size_t bytes() const;

 private:
  using Key = std::pair<std::uint64_t, int>;
  struct Entry {
    LogitRow logits;
    std::list<Key>::iterator used;
  };
  const std::size_t most_bytes_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<Key, Entry> rows_;
  std::list<Key> order_;  // the last used first
  std::size_t bytes_ = 0;
};

}  // namespace vitrine
