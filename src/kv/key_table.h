// PrefixKey -> number, of fixed capacity: nothing allocates after construction.
#pragma once

#include <vector>

#include "kv/prefix_key.h"

namespace vitrine {

class KeyTable {
 public:
  // Room for `capacity` keys.
  explicit KeyTable(int capacity);
  int size() const { return size_; }
  // -1 when absent.
  std::int32_t find(const PrefixKey& key) const;
  // The key must be absent and the table not full.
  void insert(const PrefixKey& key, std::int32_t value);
  // Sets the value of a key that may be there already.
  void put(const PrefixKey& key, std::int32_t value);
  void erase(const PrefixKey& key);  // absent keys are ignored

 private:
  struct Slot {
    PrefixKey key;
    std::int32_t value = -1;  // -1: empty
  };
  std::size_t home(const PrefixKey& key) const { return key.a & mask_; }
  std::size_t locate(const PrefixKey& key) const;  // its slot, or the empty one where it would go

  std::size_t mask_;
  int capacity_, size_ = 0;
  std::vector<Slot> slots_;  // open addressing, linear probing
};

}  // namespace vitrine
