// K and V on a device: pages of positions, and how the rows of a step find theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "tensor/kv_layout.h"
#include "tensor/tensor.h"

namespace vitrine {

// What a page holds: K and V of page_size positions of one layer. What it looks like inside is the
// backend's business; its size is Device::kv_page_bytes().
struct KvShape {
  KvLayout layout;
  int page_size = 0;  // P, positions
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
  Tensor row_offsets;  // (S+1) i32: rows of sequence s, at least one: [s] .. [s+1]-1 of it
  Tensor slots;        // (T) i32: page * P + offset where row t's K and V are stored
  Tensor block_table;  // (S, B) i32: page of positions i*P .. i*P+P-1; -1 where there is none
};

// ---- for backends
// Bytes of one head's values of one position, scales included.
std::int64_t kv_row_bytes(const KvPart& part);
// Bytes of a page without padding: the K rows of all heads and positions, then the V rows.
std::int64_t plain_page_bytes(const KvShape& shape);
// An error unless both types are formats and the widths multiples of their blocks.
Status check_kv_formats(const KvLayout& layout);
// An error unless K and V are alike: f32, f16 or bf16, heads of at most max_width. `backend`: its
// name, for the message.
Status check_uniform_kv(std::string_view backend, const KvLayout& layout, int max_width);

}  // namespace vitrine
