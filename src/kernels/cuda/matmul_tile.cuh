// Up to 64 rows per block of outputs, any number in turns: weights are still read once per 64 rows.
//
// matmul_prepare.cu has brought the rows into operands of the tensor instruction in the workspace,
// or the op before has left them so.
// A block has 8 warps of two tiles of 16 outputs each (of gate and up where glu) and a part of K.
// Units of weights and the operands of their columns come through a ring of stages in shared
// memory. The parts of K are added up in order, so that a result does not depend on the number of
// rows: from Hopper on the blocks of the parts are a cluster, in which each adds up its share of
// the tokens out of the others' shared memory; before, the block that finishes last does it.
#pragma once

#include "kernels/cuda/matmul_kernels.cuh"
#include "kernels/cuda/matmul_tile_outputs.cuh"
#include "kernels/cuda/matmul_unit.cuh"
#include "kernels/cuda/matmul_wide.cuh"
#include "kernels/cuda/operands.cuh"

namespace vitrine::cuda {

// Rows to operands, for f16 or bf16; cols: K padded. `factors` only for f16.
void prepare_operands(Context& c, const Job& job, bool half, int tokens, int cols, uint4* x,
                      float* sums, float* factors);

template <typename F, int NT>
struct TileShape {
  static constexpr int kXBytes = F::kCols / 16 * NT * 256;
  static constexpr int kSumBytes = F::kMin ? F::kCols / 32 * NT * 32 : 0;
  static constexpr int kStageBytes = kTilesPerBlock * F::kWords * 4 + kXBytes + kSumBytes;
  static constexpr int kScratchBytes = kTileWarps * 2 * F::kScratch * 4;
  // What every device from sm_80 on has, or more where that is less than two stages.
  static constexpr int kFit = ((160 << 10) - kScratchBytes) / kStageBytes;
  static constexpr int kStages = kFit < 2 ? 2 : kFit > 6 ? 6 : kFit;
  static constexpr int kShared = kStages * kStageBytes + kScratchBytes;
};

template <int NT>
struct TileX {
  static constexpr bool kPaired = false, kOne = false;
  const std::uint32_t* at;
  const float2* sums;
  __device__ uint2 operator()(int j, int nt) const {
    return {at[(2 * j * NT + nt) * 32], at[((2 * j + 1) * NT + nt) * 32]};
  }
  __device__ float2 sum(int g, int nt) const { return sums[(g * NT + nt) * 4]; }
};

template <typename F>
__device__ void fetch_weights(std::byte* stage, int unit, const std::uint32_t* const (&w)[2]) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int s = 0; s < 2; ++s) {
    if (!w[s]) continue;
    auto* to = reinterpret_cast<std::uint32_t*>(stage) + (warp * 2 + s) * F::kWords;
    const std::uint32_t* from = w[s] + std::int64_t{unit} * F::kWords;
    for (int i = lane; i < F::kWords / 4; i += 32) copy_async16(to + i * 4, from + i * 4);
  }
}

template <typename F, int NT>
__device__ void fetch_operands(const Operands& in, std::byte* stage, int unit) {
  using Shape = TileShape<F, NT>;
  std::byte* x = stage + kTilesPerBlock * F::kWords * 4;
  for (int i = threadIdx.x; i < Shape::kXBytes / 16; i += kTileThreads) {
    int j = i / (NT * 8), rest = i % (NT * 8);
    copy_async16(
        x + i * 16,
        in.x + (std::int64_t{unit * (F::kCols / 8) + j} * (in.tokens / 8) + blockIdx.z * NT) * 8 +
            rest);
  }
  if constexpr (F::kMin)
    for (int i = threadIdx.x; i < Shape::kSumBytes / 16; i += kTileThreads) {
      int g = i / (NT * 2), rest = i % (NT * 2);
      copy_async16(x + Shape::kXBytes + i * 16,
                   in.sums + std::int64_t{unit * (F::kCols / 32) + g} * in.tokens +
                       blockIdx.z * NT * 8 + rest * 4);
    }
}

template <typename F, int NT>
__global__ void __launch_bounds__(kTileThreads, 1)
    tile_kernel(const __grid_constant__ Job job, const __grid_constant__ Operands in,
                int part_units, std::uint32_t* left) {
  using Shape = TileShape<F, NT>;
  extern __shared__ __align__(128) std::byte shared[];
  __shared__ float factors[8 * NT];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int first = blockIdx.y * part_units, units = min(part_units, job.units - first);
  int tile[2];
  const std::uint32_t* w[2];
#pragma unroll
  for (int s = 0; s < 2; ++s) {
    tile[s] = job.glu ? blockIdx.x * kTileWarps + warp : blockIdx.x * kTilesPerBlock + warp * 2 + s;
    int local = tile[s];
    const Segment& segment = job.glu ? job.segment[s] : segment_of(job, local);
    w[s] = tile[s] < job.tiles ? segment.w + (std::int64_t{local} * job.units + first) * F::kWords
                               : nullptr;
  }
  auto* scratch = reinterpret_cast<float*>(shared) + warp * 2 * F::kScratch;
  std::byte* stages = shared + Shape::kScratchBytes;
  auto stage = [&](int u) { return stages + u % Shape::kStages * Shape::kStageBytes; };

  // Weights first: they depend on nobody. A group is a stage: the first ones hold all weights.
  for (int u = 0; u < Shape::kStages - 1 && u < units; ++u) fetch_weights<F>(stage(u), u, w);
  pdl_wait();
#pragma unroll
  for (int u = 0; u < Shape::kStages - 1; ++u) {
    if (u < units) fetch_operands<F, NT>(in, stage(u), first + u);
    copy_commit();
  }
  if (threadIdx.x < 8 * NT)  // read after the block has met
    factors[threadIdx.x] = F::kHalf ? __ldcg(in.factors + blockIdx.z * NT * 8 + threadIdx.x) : 1.0f;
  float acc[2][NT][4] = {};
  for (int u = 0; u < units; ++u) {
    copy_wait<Shape::kStages - 2>();
    if constexpr (kWide<F>) wide_visible();
    __syncthreads();
    if (int next = u + Shape::kStages - 1; next < units) {
      fetch_weights<F>(stage(next), next, w);
      fetch_operands<F, NT>(in, stage(next), first + next);
    }
    copy_commit();
    if (!kWide<F> && !w[0] && !w[1]) continue;
    auto* words = reinterpret_cast<const std::uint32_t*>(stage(u)) + warp * 2 * F::kWords;
    std::byte* x = stage(u) + kTilesPerBlock * F::kWords * 4;
    TileX<NT> view{reinterpret_cast<const std::uint32_t*>(x) + lane,
                   reinterpret_cast<const float2*>(x + Shape::kXBytes) + lane % 4};
    // A tile past the last is multiplied by whatever its stage holds, and not written.
    const std::uint32_t* const unit[2] = {words, words + F::kWords};
    if constexpr (kWide<F>)
      multiply_wide<F, NT>(unit, x, acc, lane);
    else
      multiply_unit<F, 2, NT>(unit, scratch, view, acc, lane);
    if constexpr (F::kScratch > 0) __syncwarp();
  }
  pdl_trigger();  // the next product's weights would stand before these
  const TileOutputs out(job, tile, factors, static_cast<int>(blockIdx.z) * NT * 8,
                        F::kHalf ? nullptr : left, in.tokens);
  if (gridDim.y > 1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    static_assert(Shape::kStages * Shape::kStageBytes >= 2 * NT * kTileThreads * 16);
    copy_wait<0>();
    __syncthreads();
    add_up_in_cluster<NT>(out, acc, reinterpret_cast<float4*>(stages));
#else
    add_up_in_last<NT>(out, acc, job.partial, job.tickets);
#endif
    return;
  }
#pragma unroll
  for (int nt = 0; nt < NT; ++nt) {
    float addend[2][4];
    out.load(nt, addend);
    const float sum[2][4] = {{acc[0][nt][0], acc[0][nt][1], acc[0][nt][2], acc[0][nt][3]},
                             {acc[1][nt][0], acc[1][nt][1], acc[1][nt][2], acc[1][nt][3]}};
    out.write(nt, sum, addend);
  }
}

template <typename F, int NT>
void allow_tile_kernel(const Context& c) {
  static int allowed = 0;
  allow_shared(c, tile_kernel<F, NT>, TileShape<F, NT>::kShared, allowed);
}

inline constexpr int kMostCluster = 8;  // blocks that every device with clusters can bring together

// Clusters of so many blocks that the device runs at a time: they do not reach across its parts.
template <typename F>
int clusters_of(const Context& c, int blocks) {
  static int known[kMostCluster + 1] = {};
  if (known[blocks] > 0) return known[blocks];
  auto* kernel = tile_kernel<F, 1>;
  allow_tile_kernel<F, 1>(c);
  cudaLaunchAttribute a{};
  a.id = cudaLaunchAttributeClusterDimension;
  a.val.clusterDim.x = a.val.clusterDim.z = 1, a.val.clusterDim.y = static_cast<unsigned>(blocks);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1, static_cast<unsigned>(blocks));
  config.blockDim = kTileThreads;
  config.dynamicSmemBytes = TileShape<F, 1>::kShared;
  config.attrs = &a, config.numAttrs = 1;
  check(c, cudaOccupancyMaxActiveClusters(&known[blocks], kernel, &config), "clusters");
  return known[blocks] = std::max(known[blocks], 1);
}

// How K is parted: by the shape of the weights alone, so that sums do not depend on the rows.
struct Parting {
  int blocks = 0, parts = 0, units = 0;
};
template <typename F>
Parting part_k(const Context& c, const Job& job) {
  Parting p;
  int per_block = job.glu ? kTileWarps : kTilesPerBlock;
  p.blocks = (job.tiles + per_block - 1) / per_block;
  int wanted = std::max(1, std::min(c.sms / p.blocks, job.units / 2));
  if (c.capability >= 90) {
    wanted = std::min(wanted, kMostCluster);
    while (wanted > 1 && clusters_of<F>(c, wanted) < p.blocks) --wanted;
  }
  p.units = (job.units + wanted - 1) / wanted;
  p.parts = (job.units + p.units - 1) / p.units;
  return p;
}

template <typename F, int NT>
void launch_tile_kernel(Context& c, const Job& job, const Operands& in, const Parting& p,
                        void* left) {
  allow_tile_kernel<F, NT>(c);
  launch_cluster(c, tile_kernel<F, NT>, c.capability >= 90 ? p.parts : 1,
                 dim3(p.blocks, p.parts, in.tokens / (8 * NT)), kTileThreads,
                 TileShape<F, NT>::kShared, job, in, p.units, static_cast<std::uint32_t*>(left));
}

// Rows in turns of as many as fit into the workspace.
template <typename F>
void launch_tile(Context& c, Job job, std::byte* workspace, std::int64_t bytes) {
  c.bf16_operands = !F::kHalf;
  Parting p = part_k<F>(c, job);
  bool wide = TileShape<F, 8>::kShared <= c.shared_bytes;
  int nt = job.T <= 8 ? 1 : job.T <= 16 ? 2 : job.T <= 32 || !wide ? 4 : 8, width = nt * 8;
  std::int64_t cols = std::int64_t{job.units} * F::kCols;
  std::int64_t per_token = cols * 2 + cols / 32 * 4 + 4;
  std::int64_t partial =
      p.parts > 1 ? std::int64_t{p.parts} * p.blocks * 2 * 16 * kTileWarps * 4 : 0;  // a token
  std::int64_t turns =
      std::min<std::int64_t>((bytes - 4096) / (per_token + partial) / width, kTickets / p.blocks);
  turns = std::max<std::int64_t>(1, turns);
  VT_CHECK(width * (per_token + partial) + 4096 <= bytes, "matmul: a workspace of {}", bytes);
  int most = static_cast<int>(std::min<std::int64_t>(turns * width, 1 << 20));
  Job rest = job;
  for (int first = 0; first < job.T; first += most) {
    rest.T = std::min(most, job.T - first);
    rest.x = job.x + std::int64_t{first} * job.K;
    for (int s = 0; s < job.segments; ++s) {
      std::int64_t skip = std::int64_t{first} * job.segment[s].rows;
      rest.segment[s].out = job.segment[s].out + skip;
      if (job.segment[s].residual) rest.segment[s].residual = job.segment[s].residual + skip;
    }
    int tokens = (rest.T + width - 1) / width * width;
    auto* x = reinterpret_cast<uint4*>(workspace);
    auto* sums = reinterpret_cast<float*>(workspace + cols * 2 * tokens);
    float* factors = sums + cols / 32 * tokens;
    rest.partial = factors + tokens;
    Operands in{x, sums, factors, tokens};
    void* left = nullptr;
    bool bf16 = !F::kHalf && rest.T == job.T;
    if (const uint4* given =
            bf16 && !job.norm && cols == job.K ? given_operands(c, job.x, job.T, job.K) : nullptr) {
      in.x = given;
    } else {
      prepare_operands(c, rest, F::kHalf, tokens, static_cast<int>(cols), x,
                       F::kMin ? sums : nullptr, factors);
      if (bf16 && job.glu) left = leave_operands(c, job.segment[0].out, job.T, job.segment[0].rows);
    }
    if (nt == 1)
      launch_tile_kernel<F, 1>(c, rest, in, p, left);
    else if (nt == 2)
      launch_tile_kernel<F, 2>(c, rest, in, p, left);
    else if (nt == 4)
      launch_tile_kernel<F, 4>(c, rest, in, p, left);
    else
      launch_tile_kernel<F, 8>(c, rest, in, p, left);
  }
}

}  // namespace vitrine::cuda
