// What a layer asks of the KV cache. Layers with equal specs form a group, which has a page pool
// and, per sequence, a block table of its own.
#pragma once

namespace vitrine {

struct CacheSpec {
  int kv_heads = 0;
  int head_dim = 0;
  int window = 0;  // 0: every earlier position; > 0: the last `window` positions only

  static CacheSpec full(int kv_heads, int head_dim) { return {kv_heads, head_dim, 0}; }
  static CacheSpec windowed(int kv_heads, int head_dim, int window) {
    return {kv_heads, head_dim, window};
  }
  bool operator==(const CacheSpec&) const = default;
};

}  // namespace vitrine
