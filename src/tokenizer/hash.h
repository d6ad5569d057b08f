// Hash tables for vocabularies and merges. Seeded per process: a vocabulary comes from a file, and
// a file must not be able to choose colliding keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/keyed_hash.h"

namespace vitrine {

inline std::uint64_t hash_seed() { return process_secret()[0] | 1; }

inline std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed) {
  std::uint64_t h = seed ^ bytes.size();
  const char* p = bytes.data();
  std::size_t n = bytes.size();
  for (; n >= 8; p += 8, n -= 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    h = hash_mix(h ^ word, 0x9E3779B97F4A7C15u ^ seed);
  }
  std::uint64_t word = 0;
  if (n > 0) std::memcpy(&word, p, n);
  return hash_mix(h ^ word, 0xD6E8FEB86659FD93u);
}

// Open addressing from 64-bit keys to small values. The key ~0 is reserved.
template <typename Value>
class FlatMap {
 public:
  FlatMap() : seed_(hash_seed()) {}

  const Value* find(std::uint64_t key) const {
    if (slots_.empty()) return nullptr;
    for (std::size_t i = slot_of(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return &slots_[i].value;
      if (slots_[i].key == kEmpty) return nullptr;
    }
  }
  // Returns the value now stored: the old one when the key was there and `replace` is false.
  const Value& insert(std::uint64_t key, Value value, bool replace = false) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    std::size_t i = slot_of(key);
    while (slots_[i].key != key && slots_[i].key != kEmpty) i = (i + 1) & (slots_.size() - 1);
    if (slots_[i].key == kEmpty) {
      slots_[i] = {key, value};
      ++count_;
    } else if (replace) {
      slots_[i].value = value;
    }
    return slots_[i].value;
  }
  std::size_t size() const { return count_; }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = kEmpty;
    Value value{};
  };

  std::size_t slot_of(std::uint64_t key) const {
    return hash_mix(key ^ seed_, 0x9E3779B97F4A7C15u) & (slots_.size() - 1);
  }
  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 16 : old.size() * 2, Slot{});
    count_ = 0;
    for (const Slot& slot : old)
      if (slot.key != kEmpty) insert(slot.key, slot.value);
  }

  std::uint64_t seed_;
  std::size_t count_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace vitrine
