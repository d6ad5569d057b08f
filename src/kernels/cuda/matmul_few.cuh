// One to eight rows, bound by the weights' bytes.
//
// A block takes tiles of 16 outputs in turn; its eight warps split K. Each warp copies its units
// into a ring of its own in shared memory, several ahead and across tiles, and starts before the
// kernels before it have ended: weights depend on nobody. The rows are converted once per block to
// operands of the tensor instruction in shared memory, as two halves that add up to about f32's
// precision. The warps' sums meet in shared memory, in a fixed order. Where the rows do not fit into
// shared memory, blocks (grid.y) take parts of K and the last to finish a tile adds them up.
#pragma once

#include "kernels/cuda/matmul_kernels.cuh"

namespace vitrine::cuda {

inline constexpr int kFewRows = 8, kFewWarps = 8, kFewThreads = 32 * kFewWarps;
inline constexpr int kFewElements = 16384;  // of x per block
inline constexpr int kFewRingBytes = 48 << 10;

template <typename F>
struct FewShape {
  static constexpr int kUnitBytes = F::kWords * 4;
  static constexpr int kRing = kFewRingBytes / (kFewWarps * kUnitBytes) < 2
                                   ? 2
                                   : kFewRingBytes / (kFewWarps * kUnitBytes);
  static constexpr int kRingTotal = kFewWarps * kRing * kUnitBytes;
  static constexpr int kScratchTotal = kFewWarps * F::kScratch * 4;
  // tokens: 1, 2, 4 or 8
  static int reduce_bytes(int tokens, int subs) { return 2 * kFewWarps * subs * 16 * tokens * 4; }
  static int x_bytes(int tokens, int cols, bool norm) { return (tokens + norm) * cols * 4; }
  static int sum_bytes(int tokens, int cols) { return F::kMin ? tokens * cols / 32 * 4 : 0; }
};

struct FewX {
  static constexpr int kPlanes = 2;
  struct Operand {
    std::uint32_t v[4];
  };
  const uint4* at;    // of the unit, token and quarter of the lane
  const float* sums;  // of the unit
  int tokens, first, second;
  __device__ Operand operator()(int j, int) const {
    uint4 v = at[j * tokens * 4];
    return {{v.x, v.y, v.z, v.w}};
  }
  __device__ float2 sum(int g, int) const {
    return {sums[g * tokens + first], sums[g * tokens + second]};
  }
};

// Sums over the `warps` warps of a token; all its threads get both.
__device__ inline float2 token_reduce(float sum, float max, float2* scratch, int warps) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  sum = warp_sum(sum), max = warp_max(max);
  if (lane == 0) scratch[warp] = {sum, max};
  __syncthreads();
  float2 out{0, 0};
  for (int w = warp / warps * warps, end = w + warps; w < end; ++w)
    out = {out.x + scratch[w].x, fmaxf(out.y, scratch[w].y)};
  return out;
}

// A row's columns first .. first + cols - 1 as f32 to where its operands will be: `to` holds 16
// columns every `step` float4, columns past `end` zero. Part of the block's threads.
__device__ inline void copy_row(float4* to, int step, const float* row, std::int64_t first, int cols,
                                std::int64_t end, bool aligned, int thread, int threads) {
  for (int k = thread * 4; k < cols; k += threads * 4) {
    float4* cell = to + k / 16 * step + k % 16 / 4;
    std::int64_t at = first + k;
    if (aligned && at < end) {
      copy_async16(cell, row + at);
      continue;
    }
    *cell = {at < end ? __ldcg(row + at) : 0, at + 1 < end ? __ldcg(row + at + 1) : 0,
             at + 2 < end ? __ldcg(row + at + 2) : 0, at + 3 < end ? __ldcg(row + at + 3) : 0};
  }
}

// Columns first .. first + cols - 1 of the rows as operands in xs: [cols/16][tokens][4] {hi, hi, lo,
// lo}. Each token has its share of the block's threads; the operands of 16 columns take the place of
// their f32, which four lanes hold. `norm`: the norm's weights of these columns.
template <typename F>
__device__ void convert_rows(const Job& job, int tokens, std::int64_t first, int cols, float4* xs,
                             const float4* norm, float* sums, float* inverse) {
  __shared__ float2 scratch[kFewWarps];
  int warps = kFewWarps / tokens, token = threadIdx.x / 32 / warps;
  int threads = warps * 32, thread = threadIdx.x % threads;
  const float* row = job.x + std::int64_t{token} * job.K;
  std::int64_t end = token < job.T ? job.K : 0;
  float4* mine = xs + token * 4;
  copy_row(mine, tokens * 4, row, first, cols, end, job.K % 4 == 0, thread, threads);
  copy_commit();
  bool whole = cols >= job.K;  // the block sees all of the row
  float square = 0, amax = 0;
  if (job.norm && !whole)
    for (std::int64_t k = thread; k < end; k += threads) {
      float x = __ldcg(row + k);
      square = fmaf(x, x, square);
    }
  copy_wait<0>();
  __syncthreads();
  float scale = 1;
  if (job.norm || F::kHalf) {
    for (int k = thread * 4; k < cols; k += threads * 4) {
      float4 x = mine[k / 16 * tokens * 4 + k % 16 / 4];
      if (job.norm) {
        if (whole) square += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
        float4 w = norm[k / 4];
        x = {x.x * w.x, x.y * w.y, x.z * w.z, x.w * w.w};
      }
      amax = fmaxf(fmaxf(fmaxf(amax, fabsf(x.x)), fmaxf(fabsf(x.y), fabsf(x.z))), fabsf(x.w));
    }
    float2 both = token_reduce(square, amax, scratch, warps);
    if (job.norm) scale = rsqrtf(both.x / static_cast<float>(job.K) + job.eps);
    if (F::kHalf) {
      float2 power = row_scale(both.y * scale);
      scale *= power.x;
      if (thread == 0) inverse[token] = power.y;
    }
  }
  for (int base = 0; base < cols; base += threads * 4) {
    int k = base + thread * 4;
    bool inside = k < cols;
    float4* cell = mine + k / 16 * tokens * 4;
    float4 x = inside ? cell[k % 16 / 4] : float4{};
    float4 w = inside && job.norm ? norm[k / 4] : float4{1, 1, 1, 1};
    x = {x.x * w.x * scale, x.y * w.y * scale, x.z * w.z * scale, x.w * w.w * scale};
    std::uint32_t hi[2] = {pack2<F::kHalf>(x.x, x.y), pack2<F::kHalf>(x.z, x.w)};
    float2 h0 = unpack2<F::kHalf>(hi[0]), h1 = unpack2<F::kHalf>(hi[1]);
    std::uint32_t lo[2] = {pack2<F::kHalf>(x.x - h0.x, x.y - h0.y),
                           pack2<F::kHalf>(x.z - h1.x, x.w - h1.y)};
    __syncwarp();
    if (inside) {
      auto* to = reinterpret_cast<std::uint32_t*>(cell + k % 8 / 2) + k % 16 / 8;
      to[0] = hi[0], to[4] = hi[1], to[2] = lo[0], to[6] = lo[1];
    }
    if constexpr (F::kMin) {
      float2 l0 = unpack2<F::kHalf>(lo[0]), l1 = unpack2<F::kHalf>(lo[1]);
      float sum = ((h0.x + h0.y) + (h1.x + h1.y)) + ((l0.x + l0.y) + (l1.x + l1.y));
      for (int o = 1; o < 8; o *= 2) sum += __shfl_xor_sync(0xffffffff, sum, o);
      if (inside && threadIdx.x % 8 == 0) sums[k / 32 * tokens + token] = sum;
    }
  }
}

// The units of one warp, in the order it multiplies them.
template <typename F, int kSubs>
struct UnitStream {
  const Job& job;
  int begin, end;  // units of a tile
  int tile, sub, unit;
  const std::uint32_t* at;

  __device__ UnitStream(const Job& j, int b, int e) : job(j), begin(b), end(e), tile(blockIdx.x), sub(0), unit(b) {
    if (begin == end) tile = job.tiles;
    seek();
  }
  __device__ void seek() {
    if (tile >= job.tiles) return;
    int local = tile;
    const Segment& s = kSubs == 2 ? job.segment[sub] : segment_of(job, local);
    at = s.w + (std::int64_t{local} * job.units + unit) * F::kWords;
  }
  // Starts the copy of the next unit; a group per call, empty after the last.
  __device__ void fetch(std::uint32_t* to, int lane) {
    if (tile < job.tiles) {
#pragma unroll
      for (int i = 0; i < (F::kWords / 4 + 31) / 32; ++i)
        if ((i + 1) * 32 * 4 <= F::kWords || i * 32 + lane < F::kWords / 4)
          copy_async16(to + (i * 32 + lane) * 4, at + (i * 32 + lane) * 4);
      at += F::kWords;
      if (++unit == end) {
        unit = begin;
        if (++sub == kSubs) sub = 0, tile += gridDim.x;
        seek();
      }
    }
    copy_commit();
  }
};

// Adds up the warps' sums, and the parts of K, and writes the tile's outputs.
template <int kSubs>
__device__ void finish_tile(const Job& job, int tile, int tokens, const float* sums, const float* inverse, bool scaled) {
  int count = 16 * tokens, i = threadIdx.x;
  float total[kSubs] = {};
  if (i < count)
#pragma unroll
    for (int s = 0; s < kSubs; ++s)
      for (int w = 0; w < kFewWarps; ++w) total[s] += sums[(w * kSubs + s) * count + i];
  if (i < count && scaled)
    for (int s = 0; s < kSubs; ++s) total[s] *= inverse[i / 16];
  if (gridDim.y > 1) {
    auto slot = [&](unsigned part, int s) {
      return job.partial + ((std::int64_t{part} * job.tiles + tile) * kSubs + s) * count + i;
    };
    if (i < count)
      for (int s = 0; s < kSubs; ++s) *slot(blockIdx.y, s) = total[s];
    if (!last_block(job.tickets + tile, gridDim.y)) return;
    if (i < count)
      for (int s = 0; s < kSubs; ++s) {
        total[s] = 0;
        for (unsigned p = 0; p < gridDim.y; ++p) total[s] += __ldcg(slot(p, s));
      }
  }
  if (i >= count) return;
  int local = tile;
  const Segment& s = kSubs == 2 ? job.segment[0] : segment_of(job, local);
  float sum = kSubs == 2 ? apply_activation(total[0], job.activation) * total[kSubs - 1] : total[0];
  write_output(job, s, i / 16, local * 16 + i % 16, sum);
}

template <typename F, int kSubs>
__global__ void __launch_bounds__(kFewThreads, 3) few_kernel(const __grid_constant__ Job job, int tokens, int part_units) {
  using Shape = FewShape<F>;
  extern __shared__ __align__(128) std::byte shared[];
  pdl_trigger();
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int first_unit = blockIdx.y * part_units, units = min(part_units, job.units - first_unit);
  int cols = units * F::kCols;
  auto* ring = reinterpret_cast<std::uint32_t*>(shared) + warp * Shape::kRing * F::kWords;
  auto* scratch = reinterpret_cast<float*>(shared + Shape::kRingTotal) + warp * F::kScratch;
  auto* xs = reinterpret_cast<uint4*>(shared + Shape::kRingTotal + Shape::kScratchTotal);
  auto* norm = reinterpret_cast<float4*>(xs + part_units * F::kCols * tokens / 4);
  auto* sums = reinterpret_cast<float*>(norm) + (job.norm ? part_units * F::kCols : 0);
  float* reduce = sums + (F::kMin ? part_units * F::kCols / 32 * tokens : 0);
  __shared__ float inverse[kFewRows];

  int begin = units * warp / kFewWarps, end = units * (warp + 1) / kFewWarps;
  UnitStream<F, kSubs> stream(job, first_unit + begin, first_unit + end);
#pragma unroll
  for (int i = 0; i < Shape::kRing; ++i) stream.fetch(ring + i * F::kWords, lane);
  std::int64_t first = std::int64_t{first_unit} * F::kCols;
  if (job.norm)
    copy_row(norm, 4, job.norm, first, cols, job.K, job.K % 4 == 0, threadIdx.x, kFewThreads);
  pdl_wait();
  convert_rows<F>(job, tokens, first, cols, reinterpret_cast<float4*>(xs), norm, sums, inverse);
  __syncthreads();

  int slot = 0, buffer = 0;
  FewX x{nullptr, nullptr, tokens, min(2 * (lane % 4), tokens - 1), min(2 * (lane % 4) + 1, tokens - 1)};
  const uint4* my_xs = xs + min(lane / 4, tokens - 1) * 4 + lane % 4;
  for (int tile = blockIdx.x; tile < job.tiles; tile += gridDim.x, buffer ^= 1) {
    float* to = reduce + (buffer * kFewWarps + warp) * kSubs * 16 * tokens;
#pragma unroll 1
    for (int sub = 0; sub < kSubs; ++sub) {
      float acc[1][1][4] = {};
      for (int u = begin; u < end; ++u) {
        copy_wait<Shape::kRing - 1>();
        __syncwarp();
        std::uint32_t* words = ring + slot * F::kWords;
        const std::uint32_t* const unit[1] = {words};
        x.at = my_xs + u * (F::kCols / 16) * tokens * 4;
        x.sums = sums + u * (F::kCols / 32) * tokens;
        multiply_unit<F, 1, 1>(unit, scratch, x, acc, lane);
        __syncwarp();
        stream.fetch(words, lane);
        slot = slot + 1 == Shape::kRing ? 0 : slot + 1;
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int token = 2 * (lane % 4) + i % 2;
        if (token < tokens) to[(sub * tokens + token) * 16 + lane / 4 + i / 2 * 8] = acc[0][0][i];
      }
    }
    __syncthreads();
    finish_tile<kSubs>(job, tile, tokens, reduce + buffer * kFewWarps * kSubs * 16 * tokens, inverse, F::kHalf);
  }
}

template <typename F, int kSubs>
void launch_few_kernel(Context& c, const Job& job) {
  using Shape = FewShape<F>;
  int tokens = job.T <= 1 ? 1 : job.T <= 2 ? 2 : job.T <= 4 ? 4 : 8;
  // Parts of K of at most kFewElements / tokens columns.
  int most = kFewElements / tokens / F::kCols, parts = (job.units + most - 1) / most;
  int part_units = (job.units + parts - 1) / parts;
  parts = (job.units + part_units - 1) / part_units;
  int cols = part_units * F::kCols;
  int shared = Shape::kRingTotal + Shape::kScratchTotal + Shape::x_bytes(tokens, cols, job.norm != nullptr) +
               Shape::sum_bytes(tokens, cols) + Shape::reduce_bytes(tokens, kSubs);
  auto* kernel = few_kernel<F, kSubs>;
  static int allowed = 0;
  if (shared > allowed) {
    check(c, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared), "shared memory");
    allowed = shared;
  }
  int per_sm = shared <= (110 << 10) ? 2 : 1;
  int blocks = std::max(1, std::min(job.tiles, c.sms * per_sm / parts));
  launch(c, kernel, dim3(blocks, parts), kFewThreads, shared, job, tokens, part_units);
}

template <typename F>
void launch_few(Context& c, Job job) {
  if (job.glu)
    launch_few_kernel<F, 2>(c, job);
  else
    launch_few_kernel<F, 1>(c, job);
}

}  // namespace vitrine::cuda
