// Lines to come, fetched a few at a time between the work, so that memory never rests.
#pragma once

#include <immintrin.h>

#include <cstddef>

namespace vitrine::cpu {

struct Ahead {
  const std::byte* at;
  void fetch(int lines) {
    for (int i = 0; i < lines; ++i, at += 64)
      _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T1);
  }
};

}  // namespace vitrine::cpu
