// Attention over pages: threads take (sequence, kv head, block of rows); the rows of a block and
// the query heads of the kv head's group share one pass over the pages.
#include <algorithm>

#include "kernels/cpu/backend.h"
#include "kernels/cpu/over_rows.h"

namespace vitrine::cpu {
namespace {

KvType kv_type(const KvLayout& layout) {
  switch (layout.k.type) {
    case DType::kF32:
      return KvType::kF32;
    case DType::kF16:
      return KvType::kF16;
    case DType::kBF16:
      return KvType::kBF16;
    default:
      check_failed(__FILE__, __LINE__, "kv_type", "a layout that check_kv() refuses");
  }
}

// Where things lie in a page, in bytes; see kernels.h.
struct PageLayout {
  explicit PageLayout(const KvShape& s)
      : element(kv_row_bytes({1, s.layout.k.type})),
        k_head(kv_row_bytes(s.layout.k) * s.page_size),
        v_row(kv_row_bytes({padded_head_dim(s.layout.v.width), s.layout.v.type})),
        v_head(v_row * s.page_size),
        v_start(k_head * s.layout.heads),
        page(v_start + v_head * s.layout.heads) {}
  std::int64_t element, k_head, v_row, v_head, v_start, page;
};

}  // namespace

Status CpuBackend::check_kv(const KvLayout& layout) const {
  return check_uniform_kv(name(), layout, kMaxHeadDim);
}

std::int64_t CpuBackend::kv_page_bytes(const KvShape& shape) const {
  return PageLayout(shape).page;
}

void CpuBackend::store_kv_(Tensor k, Tensor v, const KvCache& cache, const KvIndex& index) {
  const KvShape& s = cache.shape;
  PageLayout at(s);
  std::int64_t T = k.dim(0), K = s.layout.heads, D = s.layout.k.width, P = s.page_size;
  KvType type = kv_type(s.layout);
  // Threads split by head, because rows of one page share cache lines of the transposed K.
  over_rows(K, 2 * T * D, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = 0; t < T; ++t) {
      std::int64_t slot = index.slots.i32()[t], offset = slot % P;
      std::byte* page = cache.data + slot / P * at.page;
      for (std::int64_t h = begin; h < end; ++h) {
        const float* key = k.f32() + (t * K + h) * D;
        const float* value = v.f32() + (t * K + h) * D;
        k_.store(key, D, page + h * at.k_head + offset * at.element, P, type);
        k_.store(value, D, page + at.v_start + h * at.v_head + offset * at.v_row, 1, type);
      }
    }
  });
}

void CpuBackend::attention_(Tensor out, Tensor q, const KvCache& cache, const KvIndex& index,
                            const AttentionParams& params) {
  const KvShape& s = cache.shape;
  PageLayout at(s);
  const std::int64_t H = q.dim(1), D = s.layout.k.width, K = s.layout.heads, group = H / K;
  const std::int64_t S = index.row_offsets.dim(0) - 1, B = index.block_table.dim(1);
  const std::int32_t* offsets = index.row_offsets.i32();
  VT_CHECK(s.page_size <= kMaxPageSize, "pages of {} positions", s.page_size);
  VT_CHECK(D <= kMaxHeadDim, "heads of {}", D);
  // Rows of a block such that rows x heads fill a call; a group wider than a call takes several.
  const std::int64_t block = std::max<std::int64_t>(1, kMaxQueries / group);
  // Every sequence gets as many blocks as the longest needs; surplus blocks have no rows.
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < S; ++i)
    longest = std::max<std::int64_t>(longest, offsets[i + 1] - offsets[i]);
  const std::int64_t blocks = (longest + block - 1) / block;

  pool_.run(S * K * blocks, [&](std::int64_t item, int thread) {
    std::int64_t kv = item % K, rest = item / K;
    // Long contexts first: the last blocks of a prefill take the longest.
    std::int64_t b = blocks - 1 - rest % blocks, seq = rest / blocks;
    std::int64_t begin = offsets[seq] + b * block;
    std::int64_t end = std::min<std::int64_t>(begin + block, offsets[seq + 1]);
    AttentionArgs a{};
    a.block_table = index.block_table.i32() + seq * B;
    a.pages = cache.data;
    a.page_bytes = at.page;
    a.k_offset = kv * at.k_head;
    a.v_offset = at.v_start + kv * at.v_head;
    a.page_size = s.page_size;
    a.head_dim = s.layout.k.width;
    a.type = kv_type(s.layout);
    a.scale = params.scale;
    a.softcap = params.softcap;
    a.scratch = workers_[thread].attention;
    for (std::int64_t t = begin; t < end; ++t)
      for (std::int64_t g = 0; g < group; ++g) {
        std::int64_t row = t * H + kv * group + g;
        int i = a.queries++, position = index.positions.i32()[t];
        a.q[i] = q.f32() + row * D;
        a.out[i] = out.f32() + row * D;
        a.last[i] = position;
        a.first[i] = params.window > 0 ? std::max(0, position - params.window + 1) : 0;
        if (a.queries == kMaxQueries) k_.attention(a), a.queries = 0;
      }
    if (a.queries > 0) k_.attention(a);
  });
}

}  // namespace vitrine::cpu
