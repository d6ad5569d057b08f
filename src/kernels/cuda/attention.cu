// Storing K and V, and the general attention kernel: one warp per (row, head), f32 arithmetic. It
// serves pages and heads that the tensor core kernels do not support (attention_tensor.h), and
// Context::deterministic: positions are summed in ascending order, whatever else is in the batch.
#include "kernels/cuda/attention.h"

#include "kernels/cuda/attention_tensor.h"
#include "kernels/cuda/kv_head.cuh"

namespace vitrine::cuda {
namespace {

// Kernels that write to pages do not trigger the next launch early: attention_lone.cu reads pages
// before its pdl_wait().

__global__ void store_kv_kernel(KvCache cache, const float* k, const float* v,
                                const std::int32_t* slots) {
  pdl_wait();
  const KvShape& s = cache.shape;
  std::int64_t t = blockIdx.x, page = slots[t] / s.page_size, offset = slots[t] % s.page_size;
  DType type = s.layout.k.type;
  int D = s.layout.k.width, width = s.layout.heads * D;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    int head = i / D, d = i % D;
    store_kv_value(cache.data, type, element(s, page, 0, head, offset) + d, k[t * width + i]);
    store_kv_value(cache.data, type, element(s, page, 1, head, offset) + d, v[t * width + i]);
  }
}

// One warp per head of a row: the heads of q, then of k, then of v. Values go through shared
// memory, because the two values of a rotary pair are half a head apart.
constexpr int kStoreWarps = 4;
__global__ void rope_store_kernel(RopeStore r, KvCache cache, const std::int32_t* slots) {
  extern __shared__ float shared[];
  pdl_wait();
  const KvShape& s = cache.shape;
  int lane = threadIdx.x % 32, H = static_cast<int>(r.H), D = s.layout.k.width, K = s.layout.heads;
  int unit = blockIdx.y * kStoreWarps + threadIdx.x / 32;
  std::int64_t t = blockIdx.x;
  if (unit >= H + 2 * K) return;
  bool is_q = unit < H, is_v = unit >= H + K;
  int head = is_q ? unit : (unit - H) % K;
  const float* from = is_q ? r.q + (t * H + head) * D : (is_v ? r.v : r.k) + (t * K + head) * D;
  float* x = shared + threadIdx.x / 32 * D;
  turn_head(r, x, from, t, is_q ? r.q_norm : is_v ? nullptr : r.k_norm, !is_v, D);
  if (is_q) {
    for (int d = lane; d < D; d += 32) r.q[(t * H + head) * D + d] = x[d];
    return;
  }
  std::int64_t page = slots[t] / s.page_size, offset = slots[t] % s.page_size;
  std::int64_t to = element(s, page, is_v ? 1 : 0, head, offset);
  for (int d = lane; d < D; d += 32) store_kv_value(cache.data, s.layout.k.type, to + d, x[d]);
}

// One warp per (row, head): running maximum and sum over positions, D / 32 values per lane.
constexpr int kMaxPerLane = kMaxHeadDim / 32;
__global__ void attention_kernel(float* out, const float* q, KvCache cache,
                                 const std::int32_t* positions, const std::int32_t* row_offsets,
                                 const std::int32_t* block_table, int S, int B, int H,
                                 AttentionParams params) {
  pdl_wait();
  pdl_trigger();
  const KvShape& s = cache.shape;
  DType type = s.layout.k.type;
  int t = blockIdx.x, h = blockIdx.y, lane = threadIdx.x, D = s.layout.k.width;
  int sequence = 0;
  while (sequence + 1 < S && row_offsets[sequence + 1] <= t) ++sequence;
  int last = positions[t], kv = h / (H / s.layout.heads);
  int first = params.window > 0 ? max(0, last - params.window + 1) : 0;
  const float* query = q + (std::int64_t{t} * H + h) * D;
  float acc[kMaxPerLane] = {}, top = -INFINITY, sum = 0;
  for (int p = first; p <= last; ++p) {
    std::int64_t page = block_table[std::int64_t{sequence} * B + p / s.page_size];
    std::int64_t at = element(s, page, 0, kv, p % s.page_size);
    std::int64_t value_at = element(s, page, 1, kv, p % s.page_size);
    float score = 0;
    for (int d = lane; d < D; d += 32) score += query[d] * load_kv(cache.data, type, at + d);
    score = warp_sum(score) * params.scale;
    if (params.softcap > 0) score = params.softcap * tanhf(score / params.softcap);
    float next = fmaxf(top, score), old = expf(top - next), now = expf(score - next);
    sum = sum * old + now;
    for (int j = 0; j < kMaxPerLane; ++j)
      if (lane + 32 * j < D)
        acc[j] = acc[j] * old + now * load_kv(cache.data, type, value_at + lane + 32 * j);
    top = next;
  }
  for (int j = 0; j < kMaxPerLane; ++j)
    if (lane + 32 * j < D) out[(std::int64_t{t} * H + h) * D + lane + 32 * j] = acc[j] / sum;
}

}  // namespace

void store_kv(Context& c, const float* k, const float* v, std::int64_t T, const KvCache& cache,
              const std::int32_t* slots) {
  launch(c, store_kv_kernel, blocks_for(c, T, 1), 128, 0, cache, k, v, slots);
}

void rope_store_kv(Context& c, const RopeStore& r, const KvCache& cache,
                   const std::int32_t* slots) {
  const KvLayout& l = cache.shape.layout;
  dim3 grid(blocks_for(c, r.T, 1), blocks_for(c, r.H + 2 * l.heads, kStoreWarps));
  launch(c, rope_store_kernel, grid, 32 * kStoreWarps,
         static_cast<std::size_t>(kStoreWarps * l.k.width) * 4, r, cache, slots);
}

void attention(Context& c, float* out, const float* q, std::int64_t T, std::int64_t H,
               const KvCache& cache, const KvIndex& index, const AttentionParams& params) {
  const int width = cache.shape.layout.k.width;
  if (width > kMaxHeadDim) fail(c, cudaErrorInvalidValue, "attention over heads that are too wide");
  if (!c.deterministic && tensor_attention(c, out, q, T, H, cache, index, params)) return;
  launch(c, attention_kernel, {blocks_for(c, T, 1), static_cast<unsigned>(H)}, 32, 0, out, q, cache,
         index.positions.i32(), index.row_offsets.i32(), index.block_table.i32(),
         static_cast<int>(index.row_offsets.dim(0) - 1), static_cast<int>(index.block_table.dim(1)),
         static_cast<int>(H), params);
}

}  // namespace vitrine::cuda
