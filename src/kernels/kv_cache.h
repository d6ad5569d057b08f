// K and V on a device: pages of positions, and how the rows of a step find theirs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/tensor.h"

namespace vitrine {

// The K and V of one layer: n_pages pages of page_size positions. What a page looks like inside is
// the backend's business; its size is Device::kv_page_bytes().
struct KvShape {
  int kv_heads = 0;           // K
  int head_dim = 0;           // D
  int page_size = 0;          // P, positions
  DType dtype = DType::kF32;  // f32, f16 or bf16
};
// A view: the memory is the caller's, n_pages * kv_page_bytes(shape) bytes of Device::allocate().
struct KvCache {
  KvShape shape;
  std::int64_t n_pages = 0;
  std::byte* data = nullptr;
};

// Which rows belong to which sequence and where their K and V are. One per cache group and step, in
// the device's memory.
struct KvIndex {
  Tensor positions;    // (T) i32: position of each row; row t sees positions 0..positions[t]
  Tensor row_offsets;  // (S+1) i32: sequence s has rows row_offsets[s] .. row_offsets[s+1]-1
  Tensor slots;        // (T) i32: page * P + offset where row t's K and V are stored
  Tensor block_table;  // (S, B) i32: page of positions i*P .. i*P+P-1; -1 where there is none
};

}  // namespace vitrine
