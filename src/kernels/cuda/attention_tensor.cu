#include "kernels/cuda/attention_tensor.cuh"

#include <algorithm>

namespace vitrine::cuda {
namespace {

// ---- few rows ----
// A block has up to 16 rows of a sequence and KV head; each warp has 16 of every 64 positions, and
// their results are merged at the end. The positions may be split over several blocks (grid.x); the
// last block to finish merges their results. A token and its guesses may be more than 16 rows: their
// blocks stand side by side, so that keys and values come from memory once.

inline constexpr int kLeastSteps = 2, kMostParts = 256;  // of a part; of a sequence
inline constexpr int kMostTokens = 17;  // of a sequence with few rows: one and sixteen guesses

template <int kD>
struct DecodeShape {
  static constexpr int kStages = kD > 128 ? 2 : 3;
  static constexpr int kShared = kStages * AttnTile<kD>::kBytes;
  static_assert(kAttnWarps * 16 * (kD + 2) * 4 <= kShared && kMostParts * 16 * 8 <= kShared);
};

template <int kD>
inline constexpr int kPart = 16 * (kD + 2);  // floats of a result: [16][kD] values, [16] {top, sum}

// Merges the warps' results in shared memory: value(row, d, values, top, sum).
template <int kD, typename Value>
__device__ void merge_warps(const float* results, int rows, Value value) {
  for (int i = threadIdx.x; i < rows * kD; i += kAttnThreads) {
    const float* ms = results + 16 * kD + i / kD * 2;
    float top = -INFINITY, sum = 0, o = 0;
#pragma unroll
    for (int w = 0; w < kAttnWarps; ++w) top = fmaxf(top, ms[w * kPart<kD>]);
    float base = top == -INFINITY ? 0 : top;
#pragma unroll
    for (int w = 0; w < kAttnWarps; ++w) {
      float factor = exp2f(ms[w * kPart<kD>] - base);
      sum = fmaf(factor, ms[w * kPart<kD> + 1], sum);
      o = fmaf(factor, results[w * kPart<kD> + i], o);
    }
    value(i / kD, i % kD, o, top, sum);
  }
}

// Merges the parts' results in global memory: value(row, d, four values). `shared` has two floats
// for each row of each part.
template <int kD, typename Value>
__device__ void merge_parts(const float* results, int parts, int rows, float* shared, Value value) {
  auto* ms = reinterpret_cast<float2*>(shared);  // [parts][16]; .x becomes the part's weight
  int lane = threadIdx.x % 32;
  for (int i = threadIdx.x; i < parts * rows; i += kAttnThreads) {
    int part = i / rows, row = i % rows;
    ms[part * 16 + row] = __ldcg(
        reinterpret_cast<const float2*>(results + std::int64_t{part} * kPart<kD> + 16 * kD) + row);
  }
  __syncthreads();
  for (int row = threadIdx.x / 32; row < rows; row += kAttnWarps) {
    float top = -INFINITY, sum = 0;
    for (int p = lane; p < parts; p += 32) top = fmaxf(top, ms[p * 16 + row].x);
    top = warp_max(top);
    float base = top == -INFINITY ? 0 : top;
    for (int p = lane; p < parts; p += 32) {
      float2& part = ms[p * 16 + row];
      part.x = exp2f(part.x - base);
      sum = fmaf(part.x, part.y, sum);
    }
    sum = warp_sum(sum);
    for (int p = lane; p < parts; p += 32) ms[p * 16 + row].x /= sum;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < rows * kD / 4; i += kAttnThreads) {
    int row = i / (kD / 4);
    const auto* from = reinterpret_cast<const float4*>(results) + i;
    float4 o{};
#pragma unroll 8
    for (int p = 0; p < parts; ++p) {
      float4 v = __ldcg(from + std::int64_t{p} * (kPart<kD> / 4));
      float weight = ms[p * 16 + row].x;
      o = {fmaf(weight, v.x, o.x), fmaf(weight, v.y, o.y), fmaf(weight, v.z, o.z),
           fmaf(weight, v.w, o.w)};
    }
    value(row, i % (kD / 4) * 4, o);
  }
}

template <int kD, bool kHalf>
__global__ void __launch_bounds__(kAttnThreads) decode_kernel(const __grid_constant__ AttnArgs a) {
  using Shape = DecodeShape<kD>;
  extern __shared__ __align__(128) std::byte shared[];
  __shared__ bool is_last;
  pdl_trigger();
  pdl_wait();
  int kv = blockIdx.y, sequence = blockIdx.z, warp = threadIdx.x / 32;
  int first_token = __ldcg(a.row_offsets + sequence),
      tokens = __ldcg(a.row_offsets + sequence + 1) - first_token;
  int block = a.split ? blockIdx.x % a.row_blocks : blockIdx.x, rows = tokens * a.G,
      base = block * 16;
  if (!is_short(a, tokens) || base >= rows) return;
  int count = min(16, rows - base), low = INT_MAX, high = 0;
  for (int t = base / a.G; t <= (base + count - 1) / a.G; ++t) {
    int p = __ldcg(a.positions + first_token + t);
    low = min(low, a.window > 0 ? max(0, p - a.window + 1) : 0), high = max(high, p + 1);
  }
  int begin = low / kStep, steps = (high + kStep - 1) / kStep - begin;
  int per_part = steps, parts = 1, part = 0;
  if (a.split) {
    int most = static_cast<int>(gridDim.x) / a.row_blocks;
    per_part = max((steps + most - 1) / most, kLeastSteps);
    parts = (steps + per_part - 1) / per_part;
    part = static_cast<int>(blockIdx.x) / a.row_blocks;
    if (part >= parts) return;
  }
  begin += part * per_part;
  steps = min(per_part, steps - part * per_part);

  auto tile = [&](int i) {
    return reinterpret_cast<std::uint16_t*>(shared + i % Shape::kStages * AttnTile<kD>::kBytes);
  };
#pragma unroll
  for (int i = 0; i < Shape::kStages - 1; ++i) {
    if (i < steps) fetch_step<kD>(a, tile(i), sequence, kv, (begin + i) * kStep, low, high);
    copy_commit();
  }
  WarpRows<kD, kHalf> w;
  w.load(a, base, rows, first_token, kv);
  for (int i = 0; i < steps; ++i) {
    // The slot of the step before is free: the warp reads only what it copied itself.
    __syncwarp();
    if (int next = i + Shape::kStages - 1; next < steps)
      fetch_step<kD>(a, tile(next), sequence, kv, (begin + next) * kStep, low, high);
    copy_commit();
    copy_wait<Shape::kStages - 1>();
    __syncwarp();
    w.template attend<kSlice>(a, tile(i), warp * kSlice, (begin + i) * kStep + warp * kSlice);
  }
  w.add_up_sums();

  __syncthreads();
  auto* results = reinterpret_cast<float*>(shared);
  w.store(results + warp * kPart<kD>);
  __syncthreads();
  auto at = [&](int row) {
    int i = base + row;
    return a.out + (std::int64_t{first_token + i / a.G} * a.H + kv * a.G + i % a.G) * a.D;
  };
  if (parts == 1) {
    merge_warps<kD>(results, count, [&](int row, int d, float o, float, float sum) {
      if (d < a.D) at(row)[d] = o / sum;
    });
    return;
  }
  std::int64_t group = (std::int64_t{sequence} * a.K + kv) * a.row_blocks + block;
  float* all = a.partial + group * (gridDim.x / a.row_blocks) * kPart<kD>;
  float* mine = all + std::int64_t{part} * kPart<kD>;
  merge_warps<kD>(results, count, [&](int row, int d, float o, float top, float sum) {
    mine[row * kD + d] = o;
    if (d == 0) mine[16 * kD + 2 * row] = top, mine[16 * kD + 2 * row + 1] = sum;
  });
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(a.tickets + group, 1) == static_cast<unsigned>(parts) - 1;
    if (is_last) a.tickets[group] = 0;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  merge_parts<kD>(all, parts, count, results, [&](int row, int d, float4 o) {
    if (d < a.D) *reinterpret_cast<float4*>(at(row) + d) = o;
  });
}

// ---- many rows ----
// A block has 64 rows of a sequence and KV head, 16 a warp; the warps share each step's positions.

template <int kD>
struct PrefillShape {
  static constexpr int kStages = 2;
  static constexpr int kShared = kStages * AttnTile<kD>::kBytes;
  static constexpr int kPositions = kD > 128 ? 16 : 64;  // at a time: registers
};

// Sequence of block `block` and the first of its rows; false past the last.
__device__ inline bool find_rows(const AttnArgs& a, int block, int& sequence, int& base) {
  int lane = threadIdx.x % 32, before = 0;
  for (int s = 0; s < a.S; s += 32) {
    int tokens = s + lane < a.S
                     ? __ldcg(a.row_offsets + (s + lane + 1)) - __ldcg(a.row_offsets + (s + lane))
                     : 0;
    int blocks = is_short(a, tokens) ? 0 : (tokens * a.G + 63) / 64, end = blocks;
    for (int o = 1; o < 32; o *= 2) {
      int other = __shfl_up_sync(0xffffffff, end, o);
      if (lane >= o) end += other;
    }
    unsigned after = __ballot_sync(0xffffffff, before + end > block);
    if (after != 0) {
      int hit = __ffs(after) - 1;
      sequence = s + hit;
      base = (block - before - __shfl_sync(0xffffffff, end - blocks, hit)) * 64;
      return true;
    }
    before += __shfl_sync(0xffffffff, end, 31);
  }
  return false;
}

template <int kD, bool kHalf>
__global__ void __launch_bounds__(kAttnThreads) prefill_kernel(const __grid_constant__ AttnArgs a) {
  using Shape = PrefillShape<kD>;
  extern __shared__ __align__(128) std::byte shared[];
  pdl_trigger();
  pdl_wait();
  int kv = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32, sequence = 0, base = 0;
  // Later rows see more positions, so they start first.
  if (!find_rows(a, static_cast<int>(gridDim.x - 1 - blockIdx.x), sequence, base)) return;
  int first_token = __ldcg(a.row_offsets + sequence),
      rows = (__ldcg(a.row_offsets + sequence + 1) - first_token) * a.G;
  int count = min(64, rows - base), low = INT_MAX, high = 0;
  for (int t = base / a.G; t <= (base + count - 1) / a.G; ++t) {
    int p = __ldcg(a.positions + first_token + t);
    low = min(low, a.window > 0 ? max(0, p - a.window + 1) : 0), high = max(high, p + 1);
  }
  int begin = low / kStep, steps = (high + kStep - 1) / kStep - begin;
  auto tile = [&](int i) {
    return reinterpret_cast<std::uint16_t*>(shared + i % Shape::kStages * AttnTile<kD>::kBytes);
  };
  fetch_step<kD>(a, tile(0), sequence, kv, begin * kStep, low, high);
  copy_commit();
  WarpRows<kD, kHalf> w;
  w.load(a, base + warp * 16, rows, first_token, kv);
  for (int i = 0; i < steps; ++i) {
    if (i + 1 < steps)
      fetch_step<kD>(a, tile(i + 1), sequence, kv, (begin + i + 1) * kStep, low, high);
    copy_commit();
    copy_wait<1>();
    __syncthreads();
#pragma unroll 1
    for (int p = 0; p < kStep; p += Shape::kPositions)
      w.template attend<Shape::kPositions>(a, tile(i), p, (begin + i) * kStep + p);
    __syncthreads();
  }
  w.add_up_sums();
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    int i = base + warp * 16 + lane / 4 + 8 * h;
    if (i >= rows) continue;
    float* to = a.out + (std::int64_t{first_token + i / a.G} * a.H + kv * a.G + i % a.G) * a.D;
#pragma unroll
    for (int n = 0; n < kD / 8; ++n)
      if (int d = 8 * n + 2 * (lane % 4); d < a.D)
        *reinterpret_cast<float2*>(to + d) = {w.o[n][2 * h] / w.sum[h],
                                              w.o[n][2 * h + 1] / w.sum[h]};
  }
}

template <int kD, bool kHalf>
void launch_attention(Context& c, AttnArgs a, std::int64_t T) {
  static int decode_allowed = 0, prefill_allowed = 0;
  allow_shared(c, decode_kernel<kD, kHalf>, DecodeShape<kD>::kShared, decode_allowed);
  allow_shared(c, prefill_kernel<kD, kHalf>, PrefillShape<kD>::kShared, prefill_allowed);
  auto K = static_cast<unsigned>(a.K), S = static_cast<unsigned>(a.S);
  if (a.all) {
    launch(c, decode_kernel<kD, kHalf>, dim3(blocks_for(c, T * a.G, 16), K, S), kAttnThreads,
           DecodeShape<kD>::kShared, a);
    return;
  }
  if (a.G <= 16) {
    // No sequence has more tokens than the others leave. The grid is a matter of shapes, so that a
    // step can be replayed; blocks without rows end at once, and are not more than a few turns.
    std::int64_t tokens = std::min<std::int64_t>(T - a.S + 1, kMostTokens),
                 most = std::max<std::int64_t>(8 * c.sms / (std::int64_t{a.S} * a.K), 1);
    a.row_blocks = static_cast<int>(std::clamp<std::int64_t>((tokens * a.G + 15) / 16, 1, most));
    std::int64_t groups = std::int64_t{a.S} * a.K * a.row_blocks,
                 longest = (std::int64_t{a.B} * a.P + kStep - 1) / kStep;
    std::int64_t parts = std::min<std::int64_t>(
        {2 * c.sms / groups, longest, kMostParts, c.workspace_bytes / (groups * kPart<kD> * 4)});
    if (groups > 4096) parts = 1;
    a.split = true;
    launch(c, decode_kernel<kD, kHalf>,
           dim3(static_cast<unsigned>(std::max<std::int64_t>(parts, 1) * a.row_blocks), K, S),
           kAttnThreads, DecodeShape<kD>::kShared, a);
  }
  if ((T - a.S + 1) * a.G > 16 * a.row_blocks)
    launch(c, prefill_kernel<kD, kHalf>, dim3(blocks_for(c, T * a.G + 63LL * a.S, 64), K),
           kAttnThreads, PrefillShape<kD>::kShared, a);
}

}  // namespace

bool tensor_attention(Context& c, float* out, const float* q, std::int64_t T, std::int64_t H,
                      const KvCache& cache, const KvIndex& index, const AttentionParams& params) {
  const KvShape& s = cache.shape;
  const int D = s.layout.k.width, K = s.layout.heads;
  const bool half = s.layout.k.type == DType::kF16;
  if ((!half && s.layout.k.type != DType::kBF16) || D % 8 != 0 || D > 256 ||
      s.page_size % kSlice != 0)
    return false;
  std::int64_t S = index.row_offsets.dim(0) - 1, B = index.block_table.dim(1);
  if (T == 0 || S == 0) return true;
  VT_CHECK(S <= 65535 && K <= 65535 && T * H <= INT32_MAX / 2,
           "attention: {} rows, {} heads, {} sequences", T, H, S);
  AttnArgs a{};
  a.out = out, a.q = q, a.pages = cache.data;
  a.positions = index.positions.i32(), a.row_offsets = index.row_offsets.i32(),
  a.block_table = index.block_table.i32();
  a.partial = reinterpret_cast<float*>(c.workspace), a.tickets = c.tickets;
  a.S = static_cast<int>(S), a.B = static_cast<int>(B), a.H = static_cast<int>(H), a.K = K;
  a.D = D, a.P = s.page_size, a.G = static_cast<int>(H / K);
  a.window = params.window, a.scale = params.scale, a.softcap = params.softcap;
  a.all = c.deterministic, a.row_blocks = 1;
  if (D <= 64)
    half ? launch_attention<64, true>(c, a, T) : launch_attention<64, false>(c, a, T);
  else if (D <= 128)
    half ? launch_attention<128, true>(c, a, T) : launch_attention<128, false>(c, a, T);
  else
    half ? launch_attention<256, true>(c, a, T) : launch_attention<256, false>(c, a, T);
  return true;
}

}  // namespace vitrine::cuda
