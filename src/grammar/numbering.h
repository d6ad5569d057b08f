// Numbers for lists of numbers: identifies sets of states of automata.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/keyed_hash.h"

namespace vitrine::grammar {

// In the order of their first appearance. One block of memory holds them all.
class Numbering {
 public:
  using List = std::span<const std::uint32_t>;

  // `list` must not point into this object.
  std::pair<std::uint32_t, bool> insert(List list) {
    if (2 * size() >= slots_.size()) grow();
    const std::uint64_t h = hash(list);
    std::size_t at = find(h, list);
    if (slots_[at] != 0) return {slots_[at] - 1, false};
    all_.insert(all_.end(), list.begin(), list.end());
    begin_.push_back(all_.size());
    hashes_.push_back(h);
    slots_[at] = size();
    return {size() - 1, true};
  }
  List operator[](std::uint32_t id) const {
    return List(all_).subspan(begin_[id], begin_[id + 1] - begin_[id]);
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(hashes_.size()); }
  void clear() {
    all_.clear(), hashes_.clear(), begin_.resize(1);
    std::fill(slots_.begin(), slots_.end(), 0);
  }

 private:
  static std::uint64_t hash(List list) {
    std::uint64_t h = list.size();
    for (std::uint32_t x : list) h = keyed_mix(h, x);
    return h;
  }
  std::size_t find(std::uint64_t h, List list) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = h & mask;
    while (slots_[at] != 0 &&
           !(hashes_[slots_[at] - 1] == h && std::ranges::equal((*this)[slots_[at] - 1], list)))
      at = (at + 1) & mask;
    return at;
  }
  void grow() {
    slots_.assign(2 * slots_.size(), 0);
    const std::size_t mask = slots_.size() - 1;
    for (std::uint32_t i = 0; i < size(); ++i) {
      std::size_t at = hashes_[i] & mask;
      while (slots_[at] != 0) at = (at + 1) & mask;
      slots_[at] = i + 1;
    }
  }

  std::vector<std::uint32_t> all_;
  std::vector<std::size_t> begin_{0};
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(64, 0);  // number plus 1; 0: free
};

}  // namespace vitrine::grammar
