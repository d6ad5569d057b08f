// Hash tables whose keys come from outside: from a request, a model file, a template. A test refuses
// std's own tables of strings anywhere else.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "base/keyed_hash.h"

namespace vitrine {

// Of text and of integers. Text is found by any kind of string.
struct OutsideHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return keyed_hash(text); }
  template <typename Integer>
  requires std::is_integral_v<Integer> std::size_t operator()(Integer n) const {
    return keyed_mix(static_cast<std::uint64_t>(n), 0);
  }
};

template <typename Key, typename Value>
using OutsideMap = std::unordered_map<Key, Value, OutsideHash, std::equal_to<>>;
template <typename Key>
using OutsideSet = std::unordered_set<Key, OutsideHash, std::equal_to<>>;

}  // namespace vitrine
