// Many rows: slices of the weights are decoded to f16 or bf16 in the workspace and multiplied by
// cublasLt. Slices are small enough to be read back from the L2 cache in part.
#pragma once

#include "kernels/cuda/matmul_blas.h"
#include "kernels/cuda/matmul_kernels.cuh"

namespace vitrine::cuda {

// Rows as f16 (with the inverses of their scales) or bf16, (T, cols), columns past K zero.
void prepare_rows(Context& c, const Job& job, bool half, int cols, std::uint32_t* x,
                  float* inverse);
// out = inverse * sums (T, ld) + bias + residual for outputs first .. first + n - 1 of the segment;
// or, where glu, activation(gate) * up, the gate's sums before those of up. inverse may be null.
void finish_rows(Context& c, const Job& job, const Segment& s, const float* sums, int ld, int first,
                 int n, const float* inverse);

inline constexpr int kDecodeWarps = 4;

// Units of the tiles to rows of 16-bit weights, a warp a unit.
template <typename F>
__global__ void decode_weights_kernel(std::uint16_t* out, const std::uint32_t* w, int tiles,
                                      int units) {
  __shared__ __align__(16) std::uint32_t shared[kDecodeWarps][16][36];  // [row][32 pairs], padded
  __shared__ __align__(16) float scratch[kDecodeWarps][F::kScratch > 0 ? F::kScratch : 4];
  pdl_trigger();
  pdl_wait();  // the rows may still be read
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  std::int64_t index = std::int64_t{blockIdx.x} * kDecodeWarps + warp;
  if (index >= std::int64_t{tiles} * units) return;
  std::int64_t tile = index / units, unit = index % units, cols = std::int64_t{units} * F::kCols;
  const std::uint32_t* words = w + index * F::kWords;
  F::prepare(words, scratch[warp], lane);
  __syncwarp();
  for (int c = 0; c < F::kCols / 64; ++c) {
    typename F::Chunk chunk = F::load(words, c, lane);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      std::uint32_t a[F::kPlanes][4];
      F::operand(chunk, j, a);
      float4 s{};
      if constexpr (F::kGroup < 64)
        s = F::scale(words, scratch[warp], c * (64 / F::kGroup) + j * 16 / F::kGroup, lane);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (F::kGroup < 64) {
          float2 v = unpack2<true>(a[0][i]);
          float unit_of = i % 2 ? s.y : s.x, min = i % 2 ? s.w : s.z;
          a[0][i] = pack2<true>(fmaf(unit_of, v.x, -min), fmaf(unit_of, v.y, -min));
        }
        shared[warp][lane / 4 + 8 * (i % 2)][8 * j + lane % 4 + 4 * (i / 2)] = a[0][i];
      }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int row = i * 4 + lane / 8, part = lane % 8;
      auto* to =
          reinterpret_cast<uint4*>(out + (tile * 16 + row) * cols + unit * F::kCols + c * 64) +
          part;
      *to = *reinterpret_cast<const uint4*>(&shared[warp][row][part * 4]);
    }
    __syncwarp();
  }
}

template <typename F>
void decode_weights(Context& c, std::uint16_t* out, const Segment& s, int first_tile, int tiles,
                    int units) {
  std::int64_t count = std::int64_t{tiles} * units;
  launch(c, decode_weights_kernel<F>, dim3(blocks_for(c, count, kDecodeWarps)), 32 * kDecodeWarps,
         0, out, s.w + std::int64_t{first_tile} * units * F::kWords, tiles, units);
}

// How the workspace is cut.
struct ManyMemory {
  static constexpr std::int64_t kBlas = std::int64_t{32} << 20, kWeights = std::int64_t{64} << 20;
  int turn, tiles;  // rows at a time; tiles of weights at a time (of each of gate and up)
  std::uint32_t* x;
  float *inverse, *sums;
  std::uint16_t* w;
  void* blas;
};

inline bool plan_many(ManyMemory& m, const Job& job, std::int64_t cols, std::byte* workspace,
                      std::int64_t bytes) {
  int subs = job.glu ? 2 : 1;
  std::int64_t tiles =
      std::min<std::int64_t>(ManyMemory::kWeights / (subs * 16 * cols * 2), job.tiles);
  std::int64_t left = bytes - ManyMemory::kBlas - ManyMemory::kWeights - 4096;
  std::int64_t per_row = cols * 2 + 4 + subs * tiles * 16 * 4;
  std::int64_t turn = std::min<std::int64_t>(job.T, left / per_row);
  if (tiles < 1 || turn < 64) return false;
  if (turn < job.T) turn = turn / 64 * 64;
  m.turn = static_cast<int>(turn), m.tiles = static_cast<int>(tiles);
  m.blas = workspace;
  m.w = reinterpret_cast<std::uint16_t*>(workspace + ManyMemory::kBlas);
  m.sums = reinterpret_cast<float*>(workspace + ManyMemory::kBlas + ManyMemory::kWeights);
  m.x = reinterpret_cast<std::uint32_t*>(m.sums + turn * subs * tiles * 16);
  m.inverse = reinterpret_cast<float*>(m.x) + turn * cols / 2;
  return true;
}

// Outputs of the tiles first .. first + tiles - 1 of the segment, or of gate and up.
template <typename F>
bool multiply_slice(Context& c, const Job& job, const ManyMemory& m, const Segment& s, int first,
                    int tiles) {
  int subs = job.glu ? 2 : 1, cols = job.units * F::kCols,
      n = std::min(tiles * 16, s.rows - first * 16);
  for (int i = 0; i < subs; ++i)
    decode_weights<F>(c, m.w + std::int64_t{i} * tiles * 16 * cols, job.glu ? job.segment[i] : s,
                      first, tiles, job.units);
  bool direct = !F::kHalf && !job.glu && !s.bias;
  BlasProduct p{};
  p.x = m.x, p.w = m.w, p.T = job.T, p.K = cols, p.half = F::kHalf;
  p.workspace = m.blas, p.workspace_bytes = ManyMemory::kBlas;
  p.N = direct ? n : subs * tiles * 16;
  p.ld_out = direct ? s.rows : p.N;
  p.out = direct ? s.out + first * 16 : m.sums;
  p.add = direct && s.residual ? s.residual + first * 16 : nullptr;
  if (!blas_product(c, p)) return false;
  if (!direct)
    finish_rows(c, job, s, m.sums, static_cast<int>(p.ld_out), first * 16, n,
                F::kHalf ? m.inverse : nullptr);
  return true;
}

// False, with no output written, where the workspace is too small or cublasLt cannot.
template <typename F>
bool launch_many(Context& c, Job job, std::byte* workspace, std::int64_t bytes) {
  ManyMemory m{};
  int cols = job.units * F::kCols;
  if (F::kPlanes > 1 || !have_blas() || !plan_many(m, job, cols, workspace, bytes)) return false;
  Job turn = job;
  for (int first = 0; first < job.T; first += m.turn) {
    turn.T = std::min(m.turn, job.T - first);
    turn.x = job.x + std::int64_t{first} * job.K;
    for (int s = 0; s < job.segments; ++s) {
      std::int64_t skip = std::int64_t{first} * job.segment[s].rows;
      turn.segment[s].out = job.segment[s].out + skip;
      if (job.segment[s].residual) turn.segment[s].residual = job.segment[s].residual + skip;
    }
    prepare_rows(c, turn, F::kHalf, cols, m.x, m.inverse);
    for (int s = 0; s < (job.glu ? 1 : job.segments); ++s) {
      int tiles = (turn.segment[s].rows + 15) / 16;
      for (int t = 0; t < tiles; t += m.tiles)
        if (!multiply_slice<F>(c, turn, m, turn.segment[s], t, std::min(m.tiles, tiles - t))) {
          if (first == 0 && s == 0 && t == 0) return false;
          fail(c, cudaErrorNotSupported, "cublasLt: a slice");
        }
    }
  }
  return true;
}

}  // namespace vitrine::cuda
