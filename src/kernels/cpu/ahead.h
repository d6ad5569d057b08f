// Lines to come, fetched a few at a time between the work, so that memory never rests.
#pragma once

#include <immintrin.h>

#include <cstddef>

namespace vitrine::cpu {

template <auto kHint>  // GCC: _mm_hint; clang: int
struct Fetch {
  const std::byte* at;
  void fetch(int lines) {
    for (int i = 0; i < lines; ++i, at += 64)
      _mm_prefetch(reinterpret_cast<const char*>(at), kHint);
  }
};
using Near = Fetch<_MM_HINT_T0>;   // to the first-level cache: what is used next
using Ahead = Fetch<_MM_HINT_T1>;  // to the second

}  // namespace vitrine::cpu
