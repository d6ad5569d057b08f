// A cache by 64-bit key with a limit in bytes; evicts the least recently used. Not thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "base/outside_map.h"

namespace vitrine::grammar {

template <typename Value, typename Key = std::uint64_t>
class Lru {
 public:
  explicit Lru(std::size_t limit) : limit_(limit) {}

  std::shared_ptr<const Value> find(const Key& key) {
    auto it = index_.find(key);
    if (it == index_.end()) return nullptr;
    order_.splice(order_.begin(), order_, it->second);
    return it->second->value;
  }

  void insert(const Key& key, std::shared_ptr<const Value> value, std::size_t bytes) {
    if (bytes > limit_ || index_.contains(key)) return;
    while (used_ + bytes > limit_) {
      used_ -= order_.back().bytes;
      index_.erase(order_.back().key);
      order_.pop_back();
    }
    // What may throw comes before what changes the cache.
    std::list<Entry> fresh;
    fresh.push_front({key, std::move(value), bytes});
    index_.emplace(key, fresh.begin());
    order_.splice(order_.begin(), fresh);
    used_ += bytes;
  }

  std::size_t bytes() const { return used_; }
  std::size_t size() const { return index_.size(); }

 private:
  struct Entry {
    Key key;
    std::shared_ptr<const Value> value;
    std::size_t bytes;
  };
  std::size_t limit_, used_ = 0;
  std::list<Entry> order_;
  OutsideMap<Key, typename std::list<Entry>::iterator> index_;
};

}  // namespace vitrine::grammar
