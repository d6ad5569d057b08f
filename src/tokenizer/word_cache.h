// Ids of short words, so that a text's frequent words are encoded once. One encoding uses it at a
// time; of fixed size, two-way set associative: the older of two words is replaced.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "tokenizer/hash.h"

namespace vitrine {

class WordCache {
 public:
  static constexpr std::size_t kLongestWord = 15;
  static constexpr std::size_t kMostIds = 4;
  static constexpr std::size_t kLines = 1 << 15;  // 2 MiB

  // A word's bytes, padded with zeros, its length in the last. Never zero for a word.
  struct Key {
    std::uint64_t low = 0, high = 0;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    std::int32_t ids[kMostIds];  // -1 after the last
  };

  WordCache() : lines_(kLines), seed_(hash_seed()) {}

  // `word` has 1 to kLongestWord bytes; up to `readable` bytes may be read from its beginning.
  static Key key_of(std::string_view word, std::size_t readable) {
    Key key;
    std::size_t n = word.size();
    if (readable < 16) {
      std::memcpy(&key, word.data(), n);
    } else {
      std::memcpy(&key, word.data(), 16);
      if (n < 8) {
        key.low &= (std::uint64_t{1} << (8 * n)) - 1;
        key.high = 0;
      } else {
        key.high &= (std::uint64_t{1} << (8 * (n - 8))) - 1;
      }
    }
    key.high |= static_cast<std::uint64_t>(n) << 56;
    return key;
  }
  // Null when it is not there. Valid until the next insert.
  const Entry* find(const Key& key) const {
    const Line& line = lines_[index_of(key)];
    if (line.newer.key == key) return &line.newer;
    return line.older.key == key ? &line.older : nullptr;
  }
  void insert(const Key& key, const std::int32_t* ids, std::size_t count) {
    Line& line = lines_[index_of(key)];
    line.older = line.newer;
    line.newer.key = key;
    for (std::size_t i = 0; i < kMostIds; ++i) line.newer.ids[i] = i < count ? ids[i] : -1;
  }

 private:
  struct alignas(64) Line {
    Entry newer{}, older{};
  };
  std::size_t index_of(const Key& key) const {
    return hash_mix(key.low ^ seed_, key.high ^ 0x9E3779B97F4A7C15u) & (kLines - 1);
  }

  std::vector<Line> lines_;
  std::uint64_t seed_;
};

// The caches of a tokenizer: as many as there were encodings at once, up to kMost of them kept.
class WordCaches {
 public:
  static constexpr std::size_t kMost = 8;
  static constexpr std::size_t kBytes = kMost * WordCache::kLines * 64;  // of those that are kept

  WordCaches() { free_.reserve(kMost); }  // so that to put one back needs no memory

  class Lease {
   public:
    explicit Lease(WordCaches& from) : from_(from), cache_(from.take()) {}
    ~Lease() { from_.put(std::move(cache_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    WordCache& operator*() const { return *cache_; }

   private:
    WordCaches& from_;
    std::unique_ptr<WordCache> cache_;
  };

 private:
  std::unique_ptr<WordCache> take() {
    {
      std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto cache = std::move(free_.back());
        free_.pop_back();
        return cache;
      }
    }
    return std::make_unique<WordCache>();
  }
  void put(std::unique_ptr<WordCache> cache) {
    std::lock_guard lock(mutex_);
    if (free_.size() < kMost) free_.push_back(std::move(cache));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> free_;
};

}  // namespace vitrine
