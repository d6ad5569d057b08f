// A few rows, bound by the weights' bytes.
//
// One block per multiprocessor takes tiles of 16 outputs in turn; its warps split K, or are groups
// with a tile each. Each warp copies its units into a ring of its own in shared memory,
// several ahead and across tiles, and starts before the kernels before it have ended: weights
// depend on nobody. The rows are converted once per block to operands of the tensor instruction in
// shared memory: f16 a row a column; bf16, being coarse, as two columns that add up to 16 bits. The
// warps' sums meet in shared memory, in a fixed order.
//
// A block asks for more than half of the shared memory, so that a multiprocessor has one. With room
// for two, the blocks of the next kernel settle in pairs where the first to end were, and half of
// the multiprocessors have nothing: measured, a chain of such kernels took up to half as long
// again.
#pragma once

#include "kernels/cuda/matmul_kernels.cuh"
#include "kernels/cuda/matmul_one.cuh"
#include "kernels/cuda/matmul_ring.cuh"

namespace vitrine::cuda {

// More warps where a unit takes many instructions.
template <typename F>
inline constexpr int kFewWarps = F::kGroup < 64 ? 16 : 8;
inline constexpr int kFewVectors = 4096;  // float4 of x per block
// Shared memory of a block, more than half of a multiprocessor's 227 KiB, and the least that its
// rings have in flight.
inline constexpr int kFewShared = 116 << 10, kFewInFlight = 64 << 10;

// How a launch is cut.
struct FewShape {
  int tokens;  // 1, 2, 4 or 8
  int groups;  // of warps, each with a tile
  int ring;    // units ahead
};

inline int few_tokens(int T) { return T <= 1 ? 1 : T <= 2 ? 2 : T <= 4 ? 4 : 8; }

// Offsets in shared memory.
template <typename F, int kSubs>
struct FewMemory {
  static constexpr int kColumnBytes = F::kHalf ? 2 : 4;  // of a token
  // Of a token's operands and sums; tokens start in different banks.
  static __host__ __device__ int token_bytes(int cols) { return cols * kColumnBytes + 64; }
  // Groups of 32 columns, or what one row needs (matmul_one.cuh).
  static constexpr int kSumCols = F::kGroup < 32 ? F::kGroup : 32;
  static constexpr bool kSums = F::kMin || kHasOne<F>;
  static __host__ __device__ int token_sums(int cols) { return cols / kSumCols + 1; }
  int scratch, x, sums, reduce, total;
  __host__ __device__ FewMemory(const FewShape& s, int cols) {
    scratch = ring_barrier_bytes(kFewWarps<F>) + kFewWarps<F> * s.ring * F::kWords * 4;
    x = scratch + kFewWarps<F> * F::kScratch * 4;
    sums = x + s.tokens * token_bytes(cols);
    reduce = sums + (kSums ? (s.tokens * token_sums(cols) + 3) / 4 * 16 : 0);
    total = reduce + 2 * kFewWarps<F> * kSubs * 16 * s.tokens * 4;
  }
};

// The lane's column of the operands.
template <bool kPaired_, bool kOne_>
struct FewX {
  static constexpr bool kPaired = kPaired_, kOne = kOne_;
  const uint2* at;       // of the unit
  const float *s0, *s1;  // sums of the lane's tokens, of the unit
  __device__ uint2 operator()(int j, int) const { return at[j * (kPaired ? 8 : 4)]; }
  __device__ float2 sum(int g, int) const { return {s0[g], kOne ? 0 : s1[g]}; }
};

// Sums over the `warps` warps of a token; all its threads get both.
__device__ inline float2 token_reduce(float sum, float max, int warps) {
  __shared__ float2 scratch[16];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  sum = warp_sum(sum), max = warp_max(max);
  if (lane == 0) scratch[warp] = {sum, max};
  __syncthreads();
  float2 out{0, 0};
  for (int w = warp / warps * warps, end = w + warps; w < end; ++w)
    out = {out.x + scratch[w].x, fmaxf(out.y, scratch[w].y)};
  return out;
}

// Four columns from k, zero past `end`. kAligned: rows begin at 16 bytes.
template <bool kAligned>
__device__ inline float4 load_row4(const float* row, int k, int end) {
  if constexpr (kAligned)
    return k < end ? __ldcg(reinterpret_cast<const float4*>(row + k)) : float4{};
  else
    return {k < end ? __ldcg(row + k) : 0, k + 1 < end ? __ldcg(row + k + 1) : 0,
            k + 2 < end ? __ldcg(row + k + 2) : 0, k + 3 < end ? __ldcg(row + k + 3) : 0};
}

// Four columns of a token as operands: [16 columns][4 lanes] {b0, b1}, or {hi b0, hi b1, lo b0, lo
// b1}; kAsIs: as they are. Returns the sum of what was kept.
template <bool kHalf, bool kAsIs>
__device__ inline float store_operands(std::uint32_t* to, int k, float4 x) {
  constexpr int kWords = kHalf ? 2 : 4;  // per lane
  std::uint32_t hi[2] = {pack2<kHalf>(x.x, x.y), pack2<kHalf>(x.z, x.w)};
  float2 h0 = unpack2<kHalf>(hi[0]), h1 = unpack2<kHalf>(hi[1]);
  if constexpr (kAsIs) {
    *reinterpret_cast<uint2*>(to + k / 2) = {hi[0], hi[1]};
    return (h0.x + h0.y) + (h1.x + h1.y);
  }
  to += (k / 16 * 4 + k % 8 / 2) * kWords + k % 16 / 8;
  to[0] = hi[0], to[kWords] = hi[1];
  if constexpr (!kHalf) {
    to[2] = pack2<kHalf>(x.x - h0.x, x.y - h0.y);
    to[6] = pack2<kHalf>(x.z - h1.x, x.w - h1.y);
  }
  return (h0.x + h0.y) + (h1.x + h1.y);
}

// Calls wait(), after which the rows are there, and brings them as operands into shared memory.
// Each token has its share of the block's threads; columns past K and tokens past T are zero.
// kMost: float4 of x that a thread has at most. kOne: for OneRow.
template <typename F, int kWarps, int kMost, bool kAligned, bool kOne>
__device__ void convert_rows(const Job& job, int tokens, int cols, std::byte* xs, int token_bytes,
                             float* sums, int token_sums, float* inverse) {
  int warps = kWarps / tokens, token = threadIdx.x / 32 / warps;
  int threads = warps * 32, thread = threadIdx.x % threads;
  const float* row = job.x + std::int64_t{token} * job.K;
  int end = token < job.T ? job.K : 0;
  float4 v[kMost], w[kMost];
  if (job.norm)
#pragma unroll
    for (int i = 0; i < kMost; ++i)
      if (i * threads * 4 < cols)
        w[i] = load_row4<kAligned>(job.norm, (i * threads + thread) * 4, job.K);
  pdl_wait();
#pragma unroll
  for (int i = 0; i < kMost; ++i)
    if (i * threads * 4 < cols) v[i] = load_row4<kAligned>(row, (i * threads + thread) * 4, end);
  float square = 0, amax = 0;
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    if (i * threads * 4 >= cols) break;
    float4& x = v[i];
    if (job.norm) {
      square += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
      x = {x.x * w[i].x, x.y * w[i].y, x.z * w[i].z, x.w * w[i].w};
    }
    amax = fmaxf(fmaxf(fmaxf(amax, fabsf(x.x)), fmaxf(fabsf(x.y), fabsf(x.z))), fabsf(x.w));
  }
  float scale = 1;
  if (job.norm || F::kHalf) {
    float2 both = token_reduce(square, amax, warps);
    if (job.norm) scale = rsqrtf(both.x / static_cast<float>(job.K) + job.eps);
    if (F::kHalf) {
      float2 power = row_scale(both.y * scale);
      scale *= power.x;
      if (thread == 0) inverse[token] = power.y;
    }
  }
  auto* to = reinterpret_cast<std::uint32_t*>(xs + token * token_bytes);
  if (kOne && threadIdx.x == 0) *zero_row() = {};
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    if (i * threads * 4 >= cols) break;
    int k = (i * threads + thread) * 4;
    float sum = 0;
    if (k < cols)
      sum = store_operands<F::kHalf, kOne>(
          to, k, {v[i].x * scale, v[i].y * scale, v[i].z * scale, v[i].w * scale});
    if constexpr (F::kMin || kOne) {  // as many lanes have a group
      constexpr int kCols = FewMemory<F, 1>::kSumCols, kLanes = kCols / 4;
#pragma unroll
      for (int o = 1; o < kLanes; o *= 2) sum += __shfl_xor_sync(0xffffffff, sum, o);
      if (k < cols && threadIdx.x % kLanes == 0) sums[token * token_sums + k / kCols] = sum;
    }
  }
}

// A warp's sums of a tile to shared memory, [tokens][16 outputs].
template <typename X, bool kGroups>
__device__ inline void store_sums(float* to, const float (&acc)[4], int tokens, int lane) {
  int token = (X::kPaired ? 1 : 2) * (lane % 4);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float* at = to + token * 16 + lane / 4 + 8 * h;
    if (token < tokens) *at = X::kPaired && !kGroups ? acc[2 * h] + acc[2 * h + 1] : acc[2 * h];
    if (!X::kPaired && !X::kOne && token + 1 < tokens) at[16] = acc[2 * h + 1];
  }
}

// A warp's view of the rows in shared memory, however many they are.
template <typename F, bool kOne>
class FewRows {
  static constexpr bool kLone = kOne && kHasOne<F>;
  using X = FewX<!F::kHalf, kOne && F::kHalf>;

 public:
  __device__ FewRows(const std::byte* rows, const float* sums, int tokens, int cols, int lane)
      : one_(rows, sums, lane) {
    if constexpr (kLone) return;
    using Memory = FewMemory<F, 1>;
    int token_bytes = Memory::token_bytes(cols), token_sums = Memory::token_sums(cols);
    int column = lane / 4, token = min(X::kPaired ? column / 2 : column, tokens - 1);
    int first = min(X::kPaired ? lane % 4 : 2 * (lane % 4), tokens - 1);
    x_.at = reinterpret_cast<const uint2*>(rows + token * token_bytes) +
            (X::kPaired ? lane % 4 * 2 + column % 2 : lane % 4);
    x_.s0 = sums + first * token_sums, x_.s1 = sums + min(first + 1, tokens - 1) * token_sums;
  }
  __device__ void multiply(const std::uint32_t* unit, int u, float* scratch, float (&acc)[4],
                           int lane) const {
    if constexpr (kLone) {
      float pair[2] = {acc[0], acc[2]};
      one_.multiply(unit, u, pair, lane);
      acc[0] = pair[0], acc[2] = pair[1];
    } else {
      const std::uint32_t* const units[1] = {unit};
      X x{x_.at + u * (F::kCols / 16) * (X::kPaired ? 8 : 4), x_.s0 + u * (F::kCols / 32),
          x_.s1 + u * (F::kCols / 32)};
      float all[1][1][4] = {{{acc[0], acc[1], acc[2], acc[3]}}};
      multiply_unit<F, 1, 1>(units, scratch, x, all, lane);
#pragma unroll
      for (int i = 0; i < 4; ++i) acc[i] = all[0][0][i];
    }
  }
  // A tile's sums to shared memory, [tokens][16 outputs].
  __device__ void store(float* to, float (&acc)[4], int tokens, int lane) const {
    if constexpr (kLone)
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        acc[i] += __shfl_xor_sync(0xffffffff, acc[i], 1);
        acc[i] += __shfl_xor_sync(0xffffffff, acc[i], 2);
      }
    store_sums<X, (F::kGroup < 64)>(to, acc, tokens, lane);
  }

 private:
  // One of the two is used.
  OneRow<std::conditional_t<kHasOne<F>, F, WeightQ4_0>> one_;
  X x_{};
};

// The units of one warp, in the order it multiplies them.
template <typename F, int kSubs>
struct UnitStream {
  const Job& job;
  int begin, end;  // units of a tile
  int stride;      // tiles
  int tile, sub, unit;
  const std::uint32_t* at;

  __device__ UnitStream(const Job& j, int b, int e, int first_tile, int between)
      : job(j), begin(b), end(e), stride(between), tile(first_tile), sub(0), unit(b) {
    if (begin == end) tile = job.tiles;
    seek();
  }
  __device__ void seek() {
    at = nullptr;
    if (tile >= job.tiles) return;
    int local = tile;
    const Segment& s = kSubs == 2 ? job.segment[sub] : segment_of(job, local);
    at = s.w + (std::int64_t{local} * job.units + unit) * F::kWords;
  }
  // Null after the last.
  __device__ const std::uint32_t* next() {
    const std::uint32_t* now = at;
    if (!now) return now;
    at += F::kWords;
    if (++unit == end) {
      unit = begin;
      if (++sub == kSubs) sub = 0, tile += stride;
      seek();
    }
    return now;
  }
};

// Waits for the `threads` of a group of warps.
__device__ inline void group_barrier(int group, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "r"(threads) : "memory");
}

// Adds up the sums of a group's warps and writes the tile's outputs. One warp. kSubs: 2 where glu.
template <int kSubs>
__device__ void finish_tile(const Job& job, int tile, int tokens, int warps, const float* sums,
                            const float* inverse) {
  int count = 16 * tokens, local = tile;
  const Segment& segment = kSubs == 2 ? job.segment[0] : segment_of(job, local);
  for (int i = threadIdx.x % 32; i < count; i += 32) {
    float total[kSubs] = {};
#pragma unroll
    for (int s = 0; s < kSubs; ++s) {
#pragma unroll 4
      for (int w = 0; w < warps; ++w) total[s] += sums[(w * kSubs + s) * count + i];
      if (inverse) total[s] *= inverse[i / 16];
    }
    float sum =
        kSubs == 2 ? apply_activation(total[0], job.activation) * total[kSubs - 1] : total[0];
    write_output(job, segment, i / 16, local * 16 + i % 16, sum);
  }
}

// kOne: one row, f16 formats only.
template <typename F, int kSubs, bool kOne>
__global__ void __launch_bounds__(32 * kFewWarps<F>, 1)
    few_kernel(const __grid_constant__ Job job, const __grid_constant__ FewShape shape) {
  constexpr bool kLone = kOne && kHasOne<F>;
  extern __shared__ __align__(128) std::byte shared[];
  __shared__ float inverse[8];
  pdl_trigger();
  constexpr int kWarps = kFewWarps<F>, kMost = kFewVectors / (32 * kWarps);
  int cols = job.units * F::kCols;
  const FewMemory<F, kSubs> memory(shape, cols);
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, tokens = kOne ? 1 : shape.tokens;
  int token_bytes = memory.token_bytes(cols), token_sums = memory.token_sums(cols);
  auto* slots = reinterpret_cast<std::uint32_t*>(shared + ring_barrier_bytes(kWarps));
  Ring<F::kWords> ring(slots + warp * shape.ring * F::kWords,
                       reinterpret_cast<std::uint64_t*>(shared) + warp * kMaxRing, shape.ring,
                       lane);
  auto* scratch = reinterpret_cast<float*>(shared + memory.scratch) + warp * F::kScratch;
  auto* sums = reinterpret_cast<float*>(shared + memory.sums);
  auto* reduce = reinterpret_cast<float*>(shared + memory.reduce);

  int warps = kWarps / shape.groups, group = warp / warps, part = warp % warps;
  int begin = job.units * part / warps, end = job.units * (part + 1) / warps;
  int first_tile = blockIdx.x * shape.groups + group, stride = gridDim.x * shape.groups;
  UnitStream<F, kSubs> stream(job, begin, end, first_tile, stride);
  for (int i = 0; i < shape.ring; ++i) ring.fetch(stream.next());
  if (job.K % 4 == 0)
    convert_rows<F, kWarps, kMost, true, kLone>(job, tokens, cols, shared + memory.x, token_bytes,
                                                sums, token_sums, inverse);
  else
    convert_rows<F, kWarps, kMost, false, kLone>(job, tokens, cols, shared + memory.x, token_bytes,
                                                 sums, token_sums, inverse);
  __syncthreads();

  const FewRows<F, kOne> rows(shared + memory.x, sums, tokens, cols, lane);
  int buffer = 0;
  for (int tile = first_tile; tile < job.tiles; tile += stride, buffer ^= 1) {
    float* buffers = reduce + (buffer * kWarps + group * warps) * kSubs * 16 * tokens;
#pragma unroll 1
    for (int sub = 0; sub < kSubs; ++sub) {
      float acc[4] = {};
      for (int u = begin; u < end; ++u) {
        rows.multiply(ring.wait(), u, scratch, acc, lane);
        __syncwarp();
        ring.fetch(stream.next());
      }
      rows.store(buffers + (part * kSubs + sub) * 16 * tokens, acc, tokens, lane);
    }
    group_barrier(group, warps * 32);
    if (part == (warps > 1 ? buffer : 0))
      finish_tile<kSubs>(job, tile, tokens, warps, buffers, F::kHalf ? inverse : nullptr);
  }
}

// As many groups of `all` warps as keep the multiprocessors equally busy: fewer have to meet.
inline int choose_groups(const Context& c, const Job& job, int all) {
  auto use = [&](int groups) {
    int warps = all / groups, slots = c.sms * groups;
    int turns = (job.tiles + slots - 1) / slots, units = (job.units + warps - 1) / warps;
    return static_cast<double>(job.tiles) / turns / slots * job.units / units / warps;
  };
  int best = 1;
  for (int groups = 2; groups <= 8; groups *= 2)
    if (use(groups) >= 0.97 * use(best)) best = groups;
  return best;
}

template <typename F, int kSubs>
FewShape few_shape(const Context& c, const Job& job) {
  FewShape s{};
  s.tokens = few_tokens(job.T);
  s.groups = choose_groups(c, job, kFewWarps<F>);
  constexpr int kSlot = kFewWarps<F> * F::kWords * 4, kLeast = (kFewInFlight + kSlot - 1) / kSlot;
  int fixed = FewMemory<F, kSubs>(s, job.units * F::kCols).total;
  s.ring = std::clamp((kFewShared - fixed) / kSlot, kLeast, kMaxRing);
  return s;
}

template <typename F, int kSubs>
int few_shared(const FewShape& s, const Job& job) {
  return std::max(FewMemory<F, kSubs>(s, job.units * F::kCols).total, kFewShared);
}

template <typename F, int kSubs, bool kOne>
void launch_few_kernel(Context& c, const Job& job) {
  FewShape s = few_shape<F, kSubs>(c, job);
  int shared = few_shared<F, kSubs>(s, job);
  auto* kernel = few_kernel<F, kSubs, kOne>;
  static int allowed = 0;
  if (shared > allowed) {
    check(c, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
          "shared memory");
    allowed = shared;
  }
  int blocks = std::min((job.tiles + s.groups - 1) / s.groups, c.sms);
  launch(c, kernel, dim3(blocks), 32 * kFewWarps<F>, shared, job, s);
}

template <typename F>
bool few_fits(const Context& c, const Job& job) {
  if (job.T > (F::kHalf ? 8 : 4) || job.units > kFewVectors * 4 / F::kCols / few_tokens(job.T))
    return false;
  int shared = job.glu ? few_shared<F, 2>(few_shape<F, 2>(c, job), job)
                       : few_shared<F, 1>(few_shape<F, 1>(c, job), job);
  return shared <= c.shared_bytes;
}

template <typename F>
void launch_few(Context& c, Job job) {
  bool one = F::kHalf && job.T == 1;
  if (job.glu)
    one ? launch_few_kernel<F, 2, F::kHalf>(c, job) : launch_few_kernel<F, 2, false>(c, job);
  else
    one ? launch_few_kernel<F, 1, F::kHalf>(c, job) : launch_few_kernel<F, 1, false>(c, job);
}

}  // namespace vitrine::cuda
