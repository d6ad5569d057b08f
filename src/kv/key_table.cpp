#include "kv/key_table.h"

#include <bit>

#include "base/check.h"

namespace vitrine {

KeyTable::KeyTable(int capacity)
    : mask_(std::bit_ceil(static_cast<std::size_t>(capacity) * 2 + 1) - 1),
      capacity_(capacity),
      slots_(mask_ + 1) {}

std::size_t KeyTable::locate(const PrefixKey& key) const {
  std::size_t i = home(key);
  while (slots_[i].value >= 0 && !(slots_[i].key == key)) i = (i + 1) & mask_;
  return i;
}

std::int32_t KeyTable::find(const PrefixKey& key) const { return slots_[locate(key)].value; }

void KeyTable::insert(const PrefixKey& key, std::int32_t value) {
  std::size_t i = locate(key);
  VT_CHECK(slots_[i].value < 0 && size_ < capacity_ && value >= 0, "{} of {} keys", size_,
           capacity_);
  slots_[i] = {key, value};
  ++size_;
}

void KeyTable::put(const PrefixKey& key, std::int32_t value) {
  std::size_t i = locate(key);
  if (slots_[i].value < 0)
    insert(key, value);
  else
    slots_[i].value = value;
}

// Later entries of the probe sequence move back into the gap, or probing would stop before them.
void KeyTable::erase(const PrefixKey& key) {
  std::size_t gap = locate(key);
  if (slots_[gap].value < 0) return;
  for (std::size_t i = (gap + 1) & mask_; slots_[i].value >= 0; i = (i + 1) & mask_) {
    std::size_t from_home = (i - home(slots_[i].key)) & mask_, from_gap = (i - gap) & mask_;
    if (from_home < from_gap) continue;
    slots_[gap] = slots_[i];
    gap = i;
  }
  slots_[gap].value = -1;
  --size_;
}

}  // namespace vitrine
