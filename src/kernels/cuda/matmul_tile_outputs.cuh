// The end of matmul_tile.cuh: sums of the parts of K are added up and become outputs.
#pragma once

#include "kernels/cuda/matmul_kernels.cuh"
#include "kernels/cuda/operands.cuh"

namespace vitrine::cuda {

inline constexpr int kTileWarps = 8, kTileThreads = 32 * kTileWarps,
                     kTilesPerBlock = 2 * kTileWarps;

// Where a thread's sums of eight tokens go: of two tiles, or of gate and up, {token, token + 1 of a
// row, of row + 8}.
class TileOutputs {
 public:
  // `factors`: of the block's tokens, the first of which is `first`. `left`: where outputs of glu
  // become operands of `tokens` tokens, or null.
  __device__ TileOutputs(const Job& job, const int (&tile)[2], const float* factors, int first,
                         std::uint32_t* left, int tokens)
      : job_(job),
        factors_(factors),
        left_(left),
        first_(first),
        tokens_(tokens),
        tiles_(job.glu ? 1 : 2) {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      int local = tile[s];
      // By value: through a reference that may be of one or the other, every use would be a load.
      if (job.glu)
        segment_[s] = job.segment[0];
      else
        segment_[s] = segment_of(job, local);
      row_[s] = local * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
      if (tile[s] >= job.tiles) segment_[s].rows = 0;
    }
  }
  // Begins to load what is added to them.
  __device__ void load(int nt, float (&addend)[2][4]) const {
    each(nt, [&](int s, int i, int token, int row) {
      addend[s][i] = output_addend(job_, segment_[s], first_ + token, row);
    });
  }
  __device__ void write(int nt, const float (&sum)[2][4], const float (&addend)[2][4]) const {
    float kept[4] = {};
    each(nt, [&](int s, int i, int token, int row) {
      if (first_ + token >= job_.T || row >= segment_[s].rows) return;
      float v = sum[s][i] * factors_[token];
      if (job_.glu) v = apply_activation(v, job_.activation) * (sum[1][i] * factors_[token]);
      v += addend[s][i];
      segment_[s].out[std::int64_t{first_ + token} * segment_[s].rows + row] = v;
      if (s == 0) kept[i] = v;
    });
    if (left_ && segment_[0].rows > 0) leave(nt, kept);
  }

 private:
  // A warp's outputs of eight tokens by a tile are two pieces of operands.
  __device__ void leave(int nt, const float (&v)[4]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      int piece = (row_[0] / 8 + h) * (tokens_ / 8) + first_ / 8 + nt;
      leave_piece(left_ + piece * 32, v[2 * h], v[2 * h + 1]);
    }
  }
  // f(tile of the two, which of its four, token of the block, row)
  template <typename Call>
  __device__ void each(int nt, Call f) const {
    int token = 8 * nt + 2 * (static_cast<int>(threadIdx.x) % 4);
#pragma unroll
    for (int s = 0; s < 2; ++s)
      if (s < tiles_)
#pragma unroll
        for (int i = 0; i < 4; ++i) f(s, i, token + i % 2, row_[s] + i / 2 * 8);
  }

  const Job& job_;
  const float* factors_;
  std::uint32_t* left_;
  int first_, tokens_, tiles_;
  int row_[2];
  Segment segment_[2];
};

// All blocks of the cluster have come here, and see what the others wrote to their shared memory.
__device__ inline void cluster_barrier() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// Out of the shared memory of the cluster's block `rank`, at the place of `mine`.
__device__ inline float4 load_of_block(const float4* mine, unsigned rank) {
  float4 v{};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  auto own = static_cast<unsigned>(__cvta_generic_to_shared(mine));
  unsigned other;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(own), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(other)
               : "memory");
#endif
  return v;
}

__device__ inline void add_part(float (&sum)[4], const float4& v, unsigned part) {
  sum[0] = part ? sum[0] + v.x : v.x, sum[1] = part ? sum[1] + v.y : v.y;
  sum[2] = part ? sum[2] + v.z : v.z, sum[3] = part ? sum[3] + v.w : v.w;
}

// Brings the parts of K together and writes the outputs. `shared`: free, [2][NT][threads] float4.
template <int NT>
__device__ void add_up_in_cluster(const TileOutputs& out, const float (&acc)[2][NT][4],
                                  float4* shared) {
  auto slot = [&](int s, int nt) { return shared + (s * NT + nt) * kTileThreads + threadIdx.x; };
  float addend[2][4] = {};
  if (blockIdx.y < NT) out.load(blockIdx.y, addend);
#pragma unroll
  for (int s = 0; s < 2; ++s)
#pragma unroll
    for (int nt = 0; nt < NT; ++nt)
      *slot(s, nt) = {acc[s][nt][0], acc[s][nt][1], acc[s][nt][2], acc[s][nt][3]};
  cluster_barrier();
  for (int nt = blockIdx.y; nt < NT; nt += gridDim.y) {
    if (nt != blockIdx.y) out.load(nt, addend);
    float sum[2][4];
#pragma unroll 4
    for (unsigned p = 0; p < gridDim.y; ++p) {
      add_part(sum[0], load_of_block(slot(0, nt), p), p);
      add_part(sum[1], load_of_block(slot(1, nt), p), p);
    }
    out.write(nt, sum, addend);
  }
  cluster_barrier();  // the others may still read this block's
}

// The same by way of global memory, in the block that finishes last.
template <int NT>
__device__ void add_up_in_last(const TileOutputs& out, const float (&acc)[2][NT][4], float* partial,
                               unsigned* tickets) {
  std::int64_t blocks = std::int64_t{gridDim.x} * gridDim.z,
               block = std::int64_t{blockIdx.z} * gridDim.x + blockIdx.x;
  auto slot = [&](unsigned part, int s, int nt) {
    return reinterpret_cast<float4*>(partial) +
           (((part * blocks + block) * 2 + s) * NT + nt) * kTileThreads + threadIdx.x;
  };
#pragma unroll
  for (int s = 0; s < 2; ++s)
#pragma unroll
    for (int nt = 0; nt < NT; ++nt)
      *slot(blockIdx.y, s, nt) = {acc[s][nt][0], acc[s][nt][1], acc[s][nt][2], acc[s][nt][3]};
  if (!last_block(tickets + block, gridDim.y)) return;
#pragma unroll
  for (int nt = 0; nt < NT; ++nt) {
    float sum[2][4], addend[2][4];
    out.load(nt, addend);
#pragma unroll 4
    for (unsigned p = 0; p < gridDim.y; ++p) {
      add_part(sum[0], __ldcg(slot(p, 0, nt)), p);
      add_part(sum[1], __ldcg(slot(p, 1, nt)), p);
    }
    out.write(nt, sum, addend);
  }
}

}  // namespace vitrine::cuda
