// A few rows, bound by the weights' bytes.
//
// One block per multiprocessor takes tiles of 16 outputs in turn; its warps split K, or are groups
// with a tile each. Each warp copies its units into a ring of its own in shared memory,
// several ahead and across tiles, and starts before the kernels before it have ended: weights
// depend on nobody. The rows are converted once per block to operands of the tensor instruction in
// shared memory: f16 a row a column; bf16, being coarse, as two columns that add up to 16 bits; one
// row of levels as bytes (matmul_one.cuh). The warps' sums meet in shared memory, in a fixed order.
//
// A block asks for more than half of the shared memory, so that a multiprocessor has one. With room
// for two, the blocks of the next kernel settle in pairs where the first to end were, and half of
// the multiprocessors have nothing: measured, a chain of such kernels took up to half as long
// again.
#pragma once

#include "kernels/cuda/matmul_ring.cuh"
#include "kernels/cuda/matmul_rows.cuh"
#include "kernels/cuda/matmul_unit.cuh"

namespace vitrine::cuda {

// More warps where a unit takes many instructions.
template <typename F>
inline constexpr int kFewWarps = F::kGroup < 64 ? 16 : 8;
// Shared memory of a block, more than half of a multiprocessor's 227 KiB; the least that its rings
// have in flight; and what they ask for before the rows, whose loads would stand behind it.
// Measured: with deeper rings everything waits longer for the rows.
template <typename F>
inline constexpr int kFewShared = (F::kCols < 256 ? 160 : 116) << 10;
inline constexpr int kFewInFlight = 64 << 10, kFewEarly = 48 << 10;

// How a launch is cut, and its shared memory.
struct FewPlan {
  int blocks;
  int tokens;       // 1, 2, 4 or 8
  int groups_of;    // warps, as a power of two; each group has a tile
  int ring, early;  // units ahead, in all and before the rows
  int operand_bytes, token_sums;
  int slots, scratch, meet, x, sums, reduce, bytes;  // offsets
};

inline int few_tokens(int T) { return T <= 1 ? 1 : T <= 2 ? 2 : T <= 4 ? 4 : 8; }

// The lane's column of the operands.
template <bool kPaired_, bool kOne_>
struct FewX {
  static constexpr bool kPaired = kPaired_, kOne = kOne_;
  const uint2* at;       // of the unit
  const float *s0, *s1;  // sums of the lane's tokens, of the unit
  __device__ uint2 operator()(int j, int) const { return at[j * (kPaired ? 8 : 4)]; }
  __device__ float2 sum(int g, int) const { return {s0[g], kOne ? 0 : s1[g]}; }
};

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
  static constexpr bool kLone = kOne && F::kLevels;
  using X = FewX<!F::kHalf, kOne && F::kHalf>;

 public:
  __device__ FewRows(const std::byte* rows, const float* sums, int tokens, int cols, int lane)
      : one_(rows, sums, cols, lane) {
    if constexpr (kLone) return;
    int token_bytes = RowBytes<F>::operands(cols), token_sums = RowBytes<F>::sums(cols, false);
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
  struct NoRow {
    __device__ NoRow(const std::byte*, const float*, int, int) {}
  };
  // One of the two is used.
  std::conditional_t<F::kLevels, OneRow<F>, NoRow> one_;
  X x_{};
};

// The units of one warp, in the order it multiplies them.
template <typename F, int kSubs>
class UnitStream {
 public:
  // Units begin .. end - 1 of every stride-th tile from `tile`.
  __device__ UnitStream(const Job& job, int begin, int end, int tile, int stride)
      : job_(job), begin_(begin), length_(end - begin), tile_(tile), stride_(stride) {}

  // The n-th from the beginning; null past the last.
  __device__ const std::uint32_t* at(int n) const {
    int turn = 0;
    if (length_ > 0)
      for (; n >= length_; n -= length_) ++turn;
    return address(turn, n);
  }
  // Goes on with the n-th from the beginning.
  __device__ void start(int n) {
    if (length_ == 0) return;
    for (turn_ = 0; n >= length_; n -= length_) ++turn_;
    unit_ = n;
    at_ = address(turn_, n);
  }
  // Null after the last.
  __device__ const std::uint32_t* next() {
    const std::uint32_t* now = at_;
    if (!now) return now;
    at_ += F::kWords;
    if (++unit_ == length_) at_ = address(++turn_, unit_ = 0);
    return now;
  }

 private:
  // A turn is a tile, of gate or of up where there are both.
  __device__ const std::uint32_t* address(int turn, int unit) const {
    int tile = tile_ + (kSubs == 2 ? turn / 2 : turn) * stride_, first = 0;
    if (length_ == 0 || tile >= job_.tiles) return nullptr;
    const std::uint32_t* w = job_.segment[0].w;
    if constexpr (kSubs == 2) {
      if (turn % 2) w = job_.segment[1].w;
    } else {
#pragma unroll
      for (int s = 1; s < kMaxSegments; ++s)
        if (s < job_.segments && tile >= job_.segment[s].first_tile)
          w = job_.segment[s].w, first = job_.segment[s].first_tile;
    }
    return w + (std::int64_t{tile - first} * job_.units + begin_ + unit) * F::kWords;
  }

  const Job& job_;
  int begin_, length_, tile_, stride_;
  int turn_ = 0, unit_ = 0;
  const std::uint32_t* at_ = nullptr;
};

// Waits for the `threads` of a group of warps.
__device__ inline void group_barrier(int group, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "r"(threads) : "memory");
}

// Adds up the sums of a group's warps and writes the tile's outputs. One warp, which has the
// factors of the tokens in its lanes. kSubs: 2 where glu.
template <int kSubs, int kWarps>
class TileEnd {
 public:
  // Begins to load what is added to the outputs of the first tokens.
  __device__ TileEnd(const Job& job, int tile, int lane)
      : job_(job), local_(tile), segment_(kSubs == 2 ? job.segment[0] : segment_of(job, local_)) {
    first_ = output_addend(job, segment_, lane / 16, local_ * 16 + lane % 16);
  }
  __device__ void write(int tokens, int warps, const float* sums, float factor, int lane) const {
    int count = 16 * tokens;
    for (int n = 0; n < count; n += 32) {
      int i = n + lane;
      float times = __shfl_sync(0xffffffff, factor, i / 16);
      if (i >= count) break;
      float total[kSubs] = {};
#pragma unroll
      for (int s = 0; s < kSubs; ++s) {
#pragma unroll
        for (int w = 0; w < kWarps; ++w)
          if (w < warps) total[s] += sums[(w * kSubs + s) * count + i];
        total[s] *= times;
      }
      float sum =
          kSubs == 2 ? apply_activation(total[0], job_.activation) * total[kSubs - 1] : total[0];
      int token = i / 16, row = local_ * 16 + i % 16;
      if (token >= job_.T || row >= segment_.rows) continue;
      sum += n == 0 ? first_ : output_addend(job_, segment_, token, row);
      segment_.out[std::int64_t{token} * segment_.rows + row] = sum;
    }
  }

 private:
  const Job& job_;
  int local_;
  const Segment& segment_;
  float first_;
};

// What the block of that number does. kOne: one row.
template <typename F, int kSubs, bool kOne>
__device__ __forceinline__ void few_block(const Job& job, const FewPlan& plan, int block) {
  constexpr int kWarps = kFewWarps<F>;
  extern __shared__ __align__(128) std::byte shared[];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, tokens = kOne ? 1 : plan.tokens;
  Ring<F::kWords> ring(
      reinterpret_cast<std::uint32_t*>(shared + plan.slots) + warp * plan.ring * F::kWords,
      reinterpret_cast<std::uint64_t*>(shared) + warp * kMaxRing, plan.ring, lane);
  int warps = 1 << plan.groups_of, group = warp >> plan.groups_of, part = warp & (warps - 1);
  int groups = kWarps >> plan.groups_of;
  int begin = job.units * part >> plan.groups_of, end = job.units * (part + 1) >> plan.groups_of;
  int first_tile = group * plan.blocks + block, stride = plan.blocks * groups;
  UnitStream<F, kSubs> stream(job, begin, end, first_tile, stride);
  ring.fill(0, plan.early, stream);

  int cols = job.units * F::kCols;
  auto* scratch = reinterpret_cast<float*>(shared + plan.scratch) + warp * F::kScratch;
  auto* sums = reinterpret_cast<float*>(shared + plan.sums);
  auto* reduce = reinterpret_cast<float*>(shared + plan.reduce);
  RowLoader<F, kWarps, kOne> loader(job, tokens, cols,
                                    reinterpret_cast<float2*>(shared + plan.meet));
  loader.load_norm();
  pdl_wait();
  loader.load_row();
  ring.fill(plan.early, plan.ring, stream);
  stream.start(plan.ring);
  loader.store(shared + plan.x, plan.operand_bytes, sums, plan.token_sums);
  __syncthreads();
  pdl_trigger();  // measured: faster than before the row is there

  constexpr bool kLate = kOne && F::kLevels;  // measured: faster so, others slower
  float factor = kLate ? 1 : loader.factor(lane);
  const FewRows<F, kOne> rows(shared + plan.x, sums, tokens, cols, lane);
  int buffer = 0;
  for (int tile = first_tile; tile < job.tiles; tile += stride, buffer ^= 1) {
    float* buffers = reduce + (buffer * kWarps + group * warps) * kSubs * 16 * tokens;
    TileEnd<kSubs, kWarps> tile_end(job, tile, lane);
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
    if (kLate && tile == first_tile && part < 2) factor = loader.factor(lane);
    group_barrier(group, warps * 32);
    if (part == (warps > 1 ? buffer : 0)) tile_end.write(tokens, warps, buffers, factor, lane);
  }
}

template <typename F, int kSubs, bool kOne>
__global__ void __launch_bounds__(32 * kFewWarps<F>, 1)
    few_kernel(const __grid_constant__ Job job, const __grid_constant__ FewPlan plan) {
  few_block<F, kSubs, kOne>(job, plan, static_cast<int>(blockIdx.x));
}

// Two products with the same row.
template <typename F, typename G>
__global__ void __launch_bounds__(32 * kFewWarps<F>, 1)
    pair_kernel(const __grid_constant__ Job job, const __grid_constant__ FewPlan plan,
                const __grid_constant__ Job job2, const __grid_constant__ FewPlan plan2) {
  int block = static_cast<int>(blockIdx.x);
  if (block < plan.blocks)
    few_block<F, 1, true>(job, plan, block);
  else
    few_block<G, 1, true>(job2, plan2, block - plan.blocks);
}

// As many groups of `all` warps as keep the blocks equally busy: fewer have to meet.
inline int choose_groups(int blocks, const Job& job, int all) {
  auto use = [&](int groups) {
    int warps = all / groups, slots = blocks * groups;
    int turns = (job.tiles + slots - 1) / slots, units = (job.units + warps - 1) / warps;
    return static_cast<double>(job.tiles) / turns / slots * job.units / units / warps;
  };
  int best = 1;
  for (int groups = 2; groups <= 8; groups *= 2)
    if (use(groups) >= 0.97 * use(best)) best = groups;
  return best;
}

template <typename F, int kSubs>
FewPlan few_plan(const Job& job, int blocks) {
  constexpr int kWarps = kFewWarps<F>, kSlot = kWarps * F::kWords * 4,
                kLeast = (kFewInFlight + kSlot - 1) / kSlot;
  FewPlan p{};
  int cols = job.units * F::kCols;
  p.blocks = blocks;
  p.tokens = few_tokens(job.T);
  for (int warps = kWarps / choose_groups(blocks, job, kWarps); warps > 1; warps /= 2)
    ++p.groups_of;
  p.operand_bytes = RowBytes<F>::operands(cols),
  p.token_sums = RowBytes<F>::sums(cols, p.tokens == 1);
  // All but the ring, which is last but for the barriers in front.
  p.scratch = ring_barrier_bytes(kWarps);
  p.meet = p.scratch + (p.tokens == 1 && F::kLevels ? 0 : kWarps * F::kScratch * 4);
  p.x = p.meet + kWarps * 8;
  p.sums = p.x + p.tokens * p.operand_bytes;
  p.reduce = p.sums + (p.tokens * p.token_sums + 3) / 4 * 16;
  p.slots = (p.reduce + 2 * kWarps * kSubs * 16 * p.tokens * 4 + 127) / 128 * 128;
  p.ring = std::clamp((kFewShared<F> - p.slots) / kSlot, kLeast, kMaxRing);
  p.early = std::clamp(kFewEarly / kSlot, 1, p.ring);
  p.bytes = std::max(p.slots + p.ring * kSlot, kFewShared<F>);
  return p;
}

// Multiprocessors that a product may have. Attention comes after q, k and v: where the blocks leave
// it no registers beside them, it gets some to itself and has its keys and values when they end.
template <typename F>
int few_sms(const Context& c, const Job& job) {
  constexpr int kForAttention = 8;
  bool before_attention = job.segments > 1 && !job.glu;
  return before_attention && job.T == 1 && F::kLevels && c.sms > 4 * kForAttention
             ? c.sms - kForAttention
             : c.sms;
}
template <typename F>
int few_blocks(const Context& c, const Job& job) {
  return std::min(job.tiles, few_sms<F>(c, job));
}

template <typename F, int kSubs, bool kOne>
void launch_few_kernel(Context& c, const Job& job) {
  FewPlan p = few_plan<F, kSubs>(job, few_blocks<F>(c, job));
  auto* kernel = few_kernel<F, kSubs, kOne>;
  static int allowed = 0;
  allow_shared(c, kernel, p.bytes, allowed);
  launch(c, kernel, dim3(p.blocks), 32 * kFewWarps<F>, p.bytes, job, p);
}

template <typename F>
bool few_fits(const Context& c, const Job& job) {
  if (job.T > (F::kHalf ? 8 : 4) || job.units > kFewVectors * 4 / F::kCols / few_tokens(job.T))
    return false;
  int blocks = few_blocks<F>(c, job);
  FewPlan p = job.glu ? few_plan<F, 2>(job, blocks) : few_plan<F, 1>(job, blocks);
  return p.bytes <= c.shared_bytes;
}

// How many of the blocks the first of two products has, so that the longer takes the least.
template <typename F, typename G>
int split_blocks(int blocks, const Job& a, const Job& b) {
  auto turns = [](const Job& job, int n) { return (job.tiles + n - 1) / n * job.units; };
  auto longer = [&](int n) {
    return std::max(turns(a, n) * F::kWords, turns(b, blocks - n) * G::kWords);
  };
  int best = 1;
  for (int n = 2; n < blocks; ++n)
    if (longer(n) <= longer(best)) best = n;
  return best;
}

template <typename F, typename G>
void launch_pair_kernel(Context& c, const Job& a, const Job& b) {
  int sms = few_sms<F>(c, a), first = split_blocks<F, G>(sms, a, b);
  FewPlan p = few_plan<F, 1>(a, first), q = few_plan<G, 1>(b, sms - first);
  int bytes = std::max(p.bytes, q.bytes);
  static int allowed = 0;
  allow_shared(c, pair_kernel<F, G>, bytes, allowed);
  launch(c, pair_kernel<F, G>, dim3(sms), 32 * kFewWarps<F>, bytes, a, p, b, q);
}

template <typename F>
void launch_few(Context& c, Job job) {
  bool one = job.T == 1;
  if (job.glu)
    one ? launch_few_kernel<F, 2, true>(c, job) : launch_few_kernel<F, 2, false>(c, job);
  else
    one ? launch_few_kernel<F, 1, true>(c, job) : launch_few_kernel<F, 1, false>(c, job);
}

}  // namespace vitrine::cuda
