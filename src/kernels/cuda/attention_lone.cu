// Decode steps with one token per sequence and few sequences: norm, rotation, storing and attention
// in one kernel.
//
// A block has a sequence, a KV head and a part of the positions; the block with the last position
// stores the token's key and value. Keys and values are loaded from the pages straight into
// operands of the tensor instruction. The order of a sum is free, so columns and positions are
// assigned to lanes such that each lane reads 16 bytes at a time. Keys and values of earlier
// tokens, and the block table, were written before this step, so their loads do not wait for the
// kernels before this one. The output may also be left as operands of the next product
// (operands.cuh).
#include "kernels/cuda/attention_lone.h"

#include <algorithm>

#include "kernels/cuda/kv_head.cuh"
#include "kernels/cuda/operands.cuh"

namespace vitrine::cuda {
namespace {

constexpr int kLoneSlice = 16;  // positions that a warp processes at a time
constexpr int kLongest = 2048;  // positions per sequence when there are many sequences
constexpr int kMostHeads = 8;   // query heads of a KV head: the columns of the tensor instruction

struct LoneArgs {
  RopeStore rope;
  KvCache cache;
  const std::int32_t *positions, *slots, *block_table;
  float* out;           // (S,H,D)
  std::uint16_t* left;  // (S, H D) as operands, or null
  int left_tokens;
  float* partial;  // results of parts of the positions
  unsigned* tickets;
  int B, H, G;  // G: query heads of a KV head
  int window;
  float scale, softcap;
};

// A warp's or a part's result: [G][D] values, then [G] {top, sum}. Floats.
__host__ __device__ int result_floats(int D, int G) { return G * (D + 2); }

// Eight rows of eight 16-bit numbers, two a lane, transposed.
__device__ inline std::uint32_t transpose8(std::uint32_t v) {
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(v));
  return v;
}

__device__ inline std::uint32_t word_of(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// A warp's running result for up to eight heads, the columns of the products: scores are keys * q,
// the result is values * weights. Lane l has heads 2 (l % 4) and that + 1; of 64 columns d it has
// 8 (l / 4) .. 8 (l / 4) + 7.
template <int kD, bool kHalf>
struct LoneHeads {
  std::uint32_t q[kD / 32][4];               // of head l / 4
  uint4 key[kD / 32][2], value[kD / 64][4];  // of sixteen positions
  float o[kD / 64][4][4];
  float top[2], sum[2];

  static __device__ uint4 pack8(const float* from) {
    auto x = reinterpret_cast<const float4*>(from)[0], y = reinterpret_cast<const float4*>(from)[1];
    return {pack2<kHalf>(x.x, x.y), pack2<kHalf>(x.z, x.w), pack2<kHalf>(y.x, y.y),
            pack2<kHalf>(y.z, y.w)};
  }

  // Begins with the heads [G][kD] in shared memory.
  __device__ void start(const float* heads, int G) {
#pragma unroll
    for (int b = 0; b < kD / 64; ++b)
#pragma unroll
      for (int t = 0; t < 4; ++t) o[b][t][0] = o[b][t][1] = o[b][t][2] = o[b][t][3] = 0;
    top[0] = top[1] = -INFINITY, sum[0] = sum[1] = 0;
    int lane = threadIdx.x % 32, head = lane / 4;
#pragma unroll
    for (int b = 0; b < kD / 32; ++b) {
      uint4 x{};
      if (head < G) x = pack8(heads + head * kD + 32 * b + 8 * (lane % 4));
      q[b][0] = x.x, q[b][1] = x.y, q[b][2] = x.z, q[b][3] = x.w;
    }
  }

  // Begins to load the positions first .. first + 15, of which low .. last count; k: the first's
  // key, v: its value. The last one's are in none of the two yet.
  __device__ void fetch(const std::uint16_t* k, const std::uint16_t* v, int first, int low,
                        int last) {
    int lane = threadIdx.x % 32, c = lane / 4, part = lane % 4;
#pragma unroll
    for (int b = 0; b < kD / 32; ++b)
#pragma unroll
      for (int n = 0; n < 2; ++n)
        key[b][n] =
            __ldcg(reinterpret_cast<const uint4*>(k + (8 * n + c) * kD + 32 * b + 8 * part));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int p = first + 2 * part + i % 2 + i / 2 * 8;
#pragma unroll
      for (int b = 0; b < kD / 64; ++b) {
        value[b][i] = {};  // the rest may never have been written
        if (p >= low && p < last)
          value[b][i] =
              __ldcg(reinterpret_cast<const uint4*>(v + (p - first) * kD + 64 * b + 8 * c));
      }
    }
  }

  // Puts the last position's key and value, [kD] each in shared memory, to those fetched.
  __device__ void add_last(const float* k, const float* v, int first, int last) {
    int lane = threadIdx.x % 32, c = lane / 4, part = lane % 4;
#pragma unroll
    for (int n = 0; n < 2; ++n)
      if (first + 8 * n + c == last)
#pragma unroll
        for (int b = 0; b < kD / 32; ++b) key[b][n] = pack8(k + 32 * b + 8 * part);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (first + 2 * part + i % 2 + i / 2 * 8 == last)
#pragma unroll
        for (int b = 0; b < kD / 64; ++b) value[b][i] = pack8(v + 64 * b + 8 * c);
  }

  // The positions that were fetched.
  __device__ void attend(const LoneArgs& a, int first, int low, int last) {
    int lane = threadIdx.x % 32, c = lane / 4;
    float s[4] = {};  // positions c and c + 8 (of two) by two heads
#pragma unroll
    for (int b = 0; b < kD / 32; ++b) {
      const uint4 &x = key[b][0], &y = key[b][1];
      mma<kHalf>(s, {x.x, y.x, x.y, y.y}, q[b][0], q[b][1]);
      mma<kHalf>(s, {x.z, y.z, x.w, y.w}, q[b][2], q[b][3]);
    }
    float base[2], factor[2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int p = first + c + i / 2 * 8;
      float x = s[i] * a.scale;
      if (a.softcap > 0) x = a.softcap * tanhf(x / a.softcap);
      s[i] = p >= low && p <= last ? x * 1.44269504088896f : -INFINITY;
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float high = fmaxf(s[h], s[2 + h]);
#pragma unroll
      for (int step = 4; step < 32; step *= 2)
        high = fmaxf(high, __shfl_xor_sync(0xffffffff, high, step));
      float next = fmaxf(top[h], high);
      base[h] = next == -INFINITY ? 0 : next;
      factor[h] = exp2f(top[h] - base[h]);
      top[h] = next;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) s[i] = exp2f(s[i] - base[i % 2]);
    sum[0] = fmaf(sum[0], factor[0], s[0] + s[2]);
    sum[1] = fmaf(sum[1], factor[1], s[1] + s[3]);
    std::uint32_t weight[2] = {transpose8(pack2<kHalf>(s[0], s[1])),
                               transpose8(pack2<kHalf>(s[2], s[3]))};
#pragma unroll
    for (int b = 0; b < kD / 64; ++b)
#pragma unroll
      for (int t = 0; t < 4; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) o[b][t][i] *= factor[i % 2];
        std::uint32_t w[4] = {word_of(value[b][0], t), word_of(value[b][1], t),
                              word_of(value[b][2], t), word_of(value[b][3], t)};
        mma<kHalf>(o[b][t],
                   {__byte_perm(w[0], w[1], 0x5410), __byte_perm(w[0], w[1], 0x7632),
                    __byte_perm(w[2], w[3], 0x5410), __byte_perm(w[2], w[3], 0x7632)},
                   weight[0], weight[1]);
      }
  }

  __device__ void store(float* to, int G) {
    int lane = threadIdx.x % 32, c = lane / 4;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int step = 4; step < 32; step *= 2) sum[h] += __shfl_xor_sync(0xffffffff, sum[h], step);
      int head = 2 * (lane % 4) + h;
      if (head >= G) continue;
#pragma unroll
      for (int b = 0; b < kD / 64; ++b)
#pragma unroll
        for (int t = 0; t < 4; ++t)
          *reinterpret_cast<float2*>(to + head * kD + 64 * b + 8 * c + 2 * t) = {o[b][t][h],
                                                                                 o[b][t][2 + h]};
      if (c == 0) *reinterpret_cast<float2*>(to + G * kD + 2 * head) = {top[h], sum[h]};
    }
  }
};

// Element i of `count` results together: value(o, top, sum). kShared: they are in shared memory.
template <int kD, bool kShared, typename Value>
__device__ void merge_results(const float* results, int G, int count, int i, Value value) {
  const int size = result_floats(kD, G);
  auto load = [](const float* from) { return kShared ? *from : __ldcg(from); };
  const float* ms = results + G * kD + i / kD * 2;
  float top = -INFINITY, sum = 0, o = 0;
#pragma unroll 4
  for (int w = 0; w < count; ++w) top = fmaxf(top, load(ms + w * size));
#pragma unroll 4
  for (int w = 0; w < count; ++w) {
    float factor = exp2f(load(ms + w * size) - top);
    sum = fmaf(factor, load(ms + w * size + 1), sum);
    o = fmaf(factor, load(results + w * size + i), o);
  }
  value(o, top, sum);
}

// Element i of the sequence's and KV head's output.
template <int kD>
__device__ void write_output(const LoneArgs& a, int s, int kv, int i, float v) {
  int column = kv * a.G * kD + i, S = static_cast<int>(gridDim.z);
  a.out[std::int64_t{s} * a.H * kD + column] = v;
  if (!a.left) return;
  leave_value(a.left, a.left_tokens, s, column, v);
  if (s == S - 1)
    for (int t = S; t < a.left_tokens; ++t) leave_value(a.left, a.left_tokens, t, column, 0);
}

// One sequence and KV head, and one of the parts of its positions.
template <int kD, bool kHalf, int kWarps>
__global__ void __launch_bounds__(32 * kWarps, 16 / kWarps)
    lone_kernel(const __grid_constant__ LoneArgs a) {
  constexpr int kThreads = 32 * kWarps;
  extern __shared__ __align__(16) float shared[];
  int part = blockIdx.x, most = gridDim.x, kv = blockIdx.y, s = blockIdx.z;
  __shared__ bool is_last;
  const int size = result_floats(kD, a.G);
  const KvShape& shape = a.cache.shape;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, P = shape.page_size, K = shape.layout.heads;
  int last = a.positions[s], slot = a.slots[s],
      low = a.window > 0 ? max(0, last - a.window + 1) : 0;
  int begin = low / kLoneSlice, slices = last / kLoneSlice + 1 - begin;
  int per_part = max((slices + most - 1) / most, kWarps);
  int parts = (slices + per_part - 1) / per_part;
  if (part >= parts) return;
  int end = begin + min(slices, (part + 1) * per_part);
  begin += part * per_part;

  LoneHeads<kD, kHalf> result;
  auto fetch = [&](int slice) {
    int first = slice * kLoneSlice;
    std::int64_t page = a.block_table[std::int64_t{s} * a.B + first / P];
    const auto* k = reinterpret_cast<const std::uint16_t*>(a.cache.data) +
                    element(shape, page, 0, kv, first % P);
    result.fetch(k, k + std::int64_t{K} * P * kD, first, low, last);
  };
  if (begin + warp < end) fetch(begin + warp);
  pdl_wait();

  float* heads = shared + kWarps * size;  // of q, then k and v
  for (int head = warp; head < (part == parts - 1 ? a.G + 2 : a.G); head += kWarps) {
    bool is_q = head < a.G, is_v = head == a.G + 1;
    float* mine = heads + head * kD;
    const float* from = is_q ? a.rope.q + (std::int64_t{s} * a.H + kv * a.G + head) * kD
                             : (is_v ? a.rope.v : a.rope.k) + (std::int64_t{s} * K + kv) * kD;
    turn_head(a.rope, mine, from, s,
              is_q   ? a.rope.q_norm
              : is_v ? nullptr
                     : a.rope.k_norm,
              !is_v, kD);
    if (!is_q) {
      std::int64_t to = element(shape, slot / P, is_v ? 1 : 0, kv, slot % P);
      for (int d = lane; d < kD; d += 32)
        store_kv_value(a.cache.data, shape.layout.k.type, to + d, mine[d]);
    }
  }
  // Not earlier: the loads above would queue behind those of the next product's weights.
  pdl_trigger();
  __syncthreads();
  result.start(heads, a.G);
#pragma unroll 1
  for (int slice = begin + warp; slice < end; slice += kWarps) {
    int first = slice * kLoneSlice;
    if (slice >= begin + kWarps) fetch(slice);
    if (slice == last / kLoneSlice)
      result.add_last(heads + a.G * kD, heads + (a.G + 1) * kD, first, last);
    result.attend(a, first, low, last);
  }
  int results = min(kWarps, end - begin);
  if (warp < results) result.store(shared + warp * size, a.G);
  __syncthreads();
  int count = a.G * kD, pair = s * K + kv;
  auto write = [&](int i, float v) { write_output<kD>(a, s, kv, i, v); };
  if (parts == 1) {
    for (int i = threadIdx.x; i < count; i += kThreads)
      merge_results<kD, true>(shared, a.G, results, i,
                              [&](float o, float, float sum) { write(i, o / sum); });
    return;
  }
  float* all = a.partial + std::int64_t{pair} * most * size;
  float* mine = all + std::int64_t{part} * size;
  for (int i = threadIdx.x; i < count; i += kThreads)
    merge_results<kD, true>(shared, a.G, results, i, [&](float o, float top, float sum) {
      mine[i] = o;
      if (i % kD != 0) return;
      mine[a.G * kD + i / kD * 2] = top;
      mine[a.G * kD + i / kD * 2 + 1] = sum;
    });
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(a.tickets + pair, 1) == static_cast<unsigned>(parts) - 1;
    if (is_last) a.tickets[pair] = 0;
    __threadfence();
  }
  __syncthreads();
  if (!is_last) return;
  for (int i = threadIdx.x; i < count; i += kThreads)
    merge_results<kD, false>(all, a.G, parts, i,
                             [&](float o, float, float sum) { write(i, o / sum); });
}

template <int kD, bool kHalf, int kWarps>
void launch_lone(const Context& c, const LoneArgs& a, int S) {
  const KvShape& s = a.cache.shape;
  auto* kernel = lone_kernel<kD, kHalf, kWarps>;
  // The warps' results, then the token's heads: G of q, k, v.
  auto bytes = [](int G) { return (kWarps * result_floats(kD, G) + (G + 2) * kD) * 4; };
  static int allowed = 0;
  allow_shared(c, kernel, bytes(kMostHeads), allowed);
  int longest = (a.B * s.page_size + kLoneSlice * kWarps - 1) / (kLoneSlice * kWarps);
  int parts = std::max(1, std::min(c.sms / (S * s.layout.heads), longest));
  launch(c, kernel,
         dim3(static_cast<unsigned>(parts), static_cast<unsigned>(s.layout.heads),
              static_cast<unsigned>(S)),
         32 * kWarps, static_cast<std::size_t>(bytes(a.G)), a);
}

// A block of 16 warps fills a multiprocessor; of 8 warps, half of one.
template <int kD, bool kHalf>
void launch_lone(const Context& c, const LoneArgs& a, int S) {
  if (S * a.cache.shape.layout.heads <= c.sms)
    launch_lone<kD, kHalf, 16>(c, a, S);
  else
    launch_lone<kD, kHalf, 8>(c, a, S);
}

}  // namespace

bool lone_attention(Context& c, float* out, const RopeStore& r, const KvCache& cache,
                    const KvIndex& index, const AttentionParams& params) {
  const KvShape& s = cache.shape;
  const int D = s.layout.k.width, K = s.layout.heads;
  const bool half = s.layout.k.type == DType::kF16;
  std::int64_t S = index.row_offsets.dim(0) - 1, B = index.block_table.dim(1);
  if ((D != 64 && D != 128) || (!half && s.layout.k.type != DType::kBF16) ||
      s.page_size % kLoneSlice != 0 || r.H / K > kMostHeads || r.T != S || S == 0 ||
      B * s.page_size > INT32_MAX / 2 || c.deterministic)
    return false;
  // With more (sequence, head) pairs than multiprocessors, tensor_attention() is faster on long
  // contexts.
  if (S * K > c.sms && (B * s.page_size > kLongest || S > 65535)) return false;
  LoneArgs a{};
  a.rope = r, a.cache = cache, a.slots = index.slots.i32(), a.positions = index.positions.i32(),
  a.block_table = index.block_table.i32();
  a.out = out, a.partial = reinterpret_cast<float*>(c.workspace), a.tickets = c.tickets;
  a.B = static_cast<int>(B), a.H = static_cast<int>(r.H), a.G = a.H / K;
  a.window = params.window, a.scale = params.scale, a.softcap = params.softcap;
  if (c.bf16_operands && (a.left = static_cast<std::uint16_t*>(leave_operands(c, out, S, r.H * D))))
    a.left_tokens = operand_tokens(S);
  auto n = static_cast<int>(S);
  if (D == 64)
    half ? launch_lone<64, true>(c, a, n) : launch_lone<64, false>(c, a, n);
  else
    half ? launch_lone<128, true>(c, a, n) : launch_lone<128, false>(c, a, n);
  return true;
}

}  // namespace vitrine::cuda
