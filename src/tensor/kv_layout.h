// What a KV cache stores for one position of one layer. Models state it, kv/ groups layers by it,
// kernels/ lays out pages by it.
#pragma once

#include "tensor/dtype.h"

namespace vitrine {

// K or V of one head.
struct KvPart {
  int width = 0;  // values
  // A format of quant/: plain numbers, or blocks of values that share a scale. The width is a
  // multiple of the format's block.
  DType type = DType::kF32;
  bool operator==(const KvPart&) const = default;
};

struct KvLayout {
  int heads = 0;
  KvPart k, v;

  // K and V alike.
  static KvLayout uniform(int heads, int head_dim, DType type) {
    return {heads, {head_dim, type}, {head_dim, type}};
  }
  bool operator==(const KvLayout&) const = default;
};

}  // namespace vitrine
