// What the two attention kernels share: a warp with 16 rows, which iterates over slices of 16
// positions in shared memory.
//
// A row is one query head of one token; the heads that share a KV head are packed into rows of one
// tile, so that K and V are read once for all of them. Scores and sums are f32; q, and the weights
// of the values, have the pages' type. Softmax runs over slices with a maximum and a sum per row.
#pragma once

#include "kernels/cuda/attention_tensor.h"
#include "kernels/cuda/instructions.cuh"

namespace vitrine::cuda {

inline constexpr int kAttnWarps = 4, kAttnThreads = 32 * kAttnWarps;
inline constexpr int kSlice = 16, kStep = kSlice * kAttnWarps;  // positions

struct AttnArgs {
  float* out;
  const float* q;
  const std::byte* pages;
  const std::int32_t *positions, *row_offsets, *block_table;
  float* partial;
  unsigned* tickets;
  int S, B, H, K, D, P, G;  // G: query heads of a KV head
  int window;
  float scale, softcap;
  bool split;      // grid.x are blocks of rows by parts of the positions
  int row_blocks;  // of 16 rows, of a sequence; with `split`
  bool all;        // every sequence takes the decode kernel
};

// Rows of a sequence with few enough rows for the decode kernel.
__device__ inline bool is_short(const AttnArgs& a, int tokens) {
  return a.all || tokens * a.G <= 16 * a.row_blocks;
}

// Shared memory of a step: K and V, rows padded by 16 bytes so that eight rows are in eight banks.
template <int kD>
struct AttnTile {
  static constexpr int kRow = kD + 8;  // elements
  static constexpr int kBytes = 2 * kStep * kRow * 2;
};

__device__ inline void copy_or_zero16(void* shared, const void* global, bool valid) {
  auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global),
               "r"(valid ? 16 : 0)
               : "memory");
}

template <bool kTrans>
__device__ inline void load_matrices(std::uint32_t (&r)[4], const std::uint16_t* row) {
  auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (kTrans)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from)
                 : "memory");
}

// Starts the copy of this warp's 16 positions of the step at `first` (a multiple of 64). What lies
// outside low .. high - 1 is zero: it may never have been written.
template <int kD>
__device__ inline void fetch_step(const AttnArgs& a, std::uint16_t* tile, int sequence, int kv,
                                  int first, int low, int high) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, slice = first + warp * kSlice;
  std::int64_t page = -1;
  if (slice < high && slice + kSlice > low)
    page = __ldcg(a.block_table + std::int64_t{sequence} * a.B + slice / a.P);
  std::int64_t half = std::int64_t{a.K} * a.P * a.D;
  auto* k = reinterpret_cast<const std::uint16_t*>(a.pages) +
            (page < 0 ? 0 : 2 * page * half + (std::int64_t{kv} * a.P + slice % a.P) * a.D);
  constexpr int kChunks = kD / 8;
#pragma unroll
  for (int i = 0; i < kSlice * kChunks / 32; ++i) {
    int at = i * 32 + lane, row = at / kChunks, col = at % kChunks * 8;
    bool valid = page >= 0 && col < a.D && slice + row >= low && slice + row < high;
    const std::uint16_t* from = valid ? k + row * a.D + col : k;
    std::uint16_t* to = tile + (warp * kSlice + row) * AttnTile<kD>::kRow + col;
    copy_or_zero16(to, from, valid);
    copy_or_zero16(to + kStep * AttnTile<kD>::kRow, valid ? from + half : k, valid);
  }
}

template <int kD, bool kHalf>
struct WarpRows {
  std::uint32_t q[kD / 16][4];
  float o[kD / 8][4] = {};
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};  // of rows r and r + 8; sums of the lane
  int first[2], last[2];                                   // positions the rows see

  // Rows base .. base + 15 of the sequence's n * G.
  __device__ void load(const AttnArgs& a, int base, int rows, int first_token, int kv) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      int row = base + lane / 4 + 8 * h;
      bool valid = row < rows;
      int token = first_token + (valid ? row / a.G : 0);
      last[h] = valid ? __ldcg(a.positions + token) : -1;
      first[h] = a.window > 0 ? max(0, last[h] - a.window + 1) : 0;
      const float* from = a.q + (std::int64_t{token} * a.H + kv * a.G + row % a.G) * a.D;
#pragma unroll
      for (int j = 0; j < kD / 16; ++j)
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          int d = 16 * j + 8 * part + 2 * (lane % 4);
          bool inside = valid && d < a.D;
          float2 x = inside ? __ldcg(reinterpret_cast<const float2*>(from + d)) : float2{};
          q[j][2 * part + h] = pack2<kHalf>(x.x, x.y);
        }
    }
  }

  // NP positions from `position`, at row `at` of the tile.
  template <int NP>
  __device__ void attend(const AttnArgs& a, const std::uint16_t* tile, int at, int position) {
    constexpr int kRow = AttnTile<kD>::kRow;
    int lane = threadIdx.x % 32;
    float s[NP / 8][4] = {};
    const std::uint16_t* k = tile + (at + lane / 16 * 8 + lane % 8) * kRow + lane / 8 % 2 * 8;
#pragma unroll
    for (int j = 0; j < kD / 16; ++j)
#pragma unroll
      for (int n = 0; n < NP / 16; ++n) {
        std::uint32_t b[4];
        load_matrices<false>(b, k + n * 16 * kRow + j * 16);
        mma<kHalf>(s[2 * n], q[j], b[0], b[1]);
        mma<kHalf>(s[2 * n + 1], q[j], b[2], b[3]);
      }
    float high[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int n = 0; n < NP / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int p = position + 8 * n + 2 * (lane % 4) + i % 2, h = i / 2;
        float x = s[n][i] * a.scale;
        if (a.softcap > 0) x = a.softcap * tanhf(x / a.softcap);
        s[n][i] = p >= first[h] && p <= last[h] ? x * 1.44269504088896f : -INFINITY;
        high[h] = fmaxf(high[h], s[n][i]);
      }
    float base[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      high[h] = fmaxf(high[h], __shfl_xor_sync(0xffffffff, high[h], 1));
      high[h] = fmaxf(high[h], __shfl_xor_sync(0xffffffff, high[h], 2));
      float next = fmaxf(top[h], high[h]);
      base[h] = next == -INFINITY ? 0 : next;
      float factor = exp2f(top[h] - base[h]);
      top[h] = next;
      sum[h] *= factor;
#pragma unroll
      for (int n = 0; n < kD / 8; ++n) o[n][2 * h] *= factor, o[n][2 * h + 1] *= factor;
    }
    std::uint32_t p[NP / 16][4];
#pragma unroll
    for (int n = 0; n < NP / 8; ++n)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float x = exp2f(s[n][2 * h] - base[h]), y = exp2f(s[n][2 * h + 1] - base[h]);
        sum[h] += x + y;
        p[n / 2][n % 2 * 2 + h] = pack2<kHalf>(x, y);
      }
    const std::uint16_t* v = tile + (kStep + at + lane % 16) * kRow + lane / 16 * 8;
#pragma unroll
    for (int n = 0; n < NP / 16; ++n)
#pragma unroll
      for (int j = 0; j < kD / 16; ++j) {
        std::uint32_t b[4];
        load_matrices<true>(b, v + n * 16 * kRow + j * 16);
        mma<kHalf>(o[2 * j], p[n], b[0], b[1]);
        mma<kHalf>(o[2 * j + 1], p[n], b[2], b[3]);
      }
  }

  // As [16][kD] values and [16] {top, sum}.
  __device__ void store(float* to) const {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      int row = lane / 4 + 8 * h;
#pragma unroll
      for (int n = 0; n < kD / 8; ++n)
        *reinterpret_cast<float2*>(to + row * kD + 8 * n + 2 * (lane % 4)) = {o[n][2 * h],
                                                                              o[n][2 * h + 1]};
      if (lane % 4 == 0) *reinterpret_cast<float2*>(to + 16 * kD + 2 * row) = {top[h], sum[h]};
    }
  }

  __device__ void add_up_sums() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      sum[h] += __shfl_xor_sync(0xffffffff, sum[h], 1);
      sum[h] += __shfl_xor_sync(0xffffffff, sum[h], 2);
    }
  }
};

}  // namespace vitrine::cuda
