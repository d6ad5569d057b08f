// What a layer asks of the KV cache: what it stores for a position, and how far back it looks.
// Layers with equal specs form a group, which has a page pool and, per sequence, a block table of
// its own.
#pragma once

#include "tensor/kv_layout.h"

namespace vitrine {

struct CacheSpec {
  KvLayout layout;
  int window = 0;  // 0: every earlier position; > 0: the last `window` positions only

  CacheSpec() = default;
  // K and V of the same width. Their type is the user's choice and set when memory is planned.
  CacheSpec(int kv_heads, int head_dim, int window = 0)
      : layout(KvLayout::uniform(kv_heads, head_dim, DType::kF32)), window(window) {}
  bool operator==(const CacheSpec&) const = default;
};

}  // namespace vitrine
