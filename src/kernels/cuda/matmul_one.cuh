// One row times a unit of levels with a scale per group, in integers.
//
// The row is quantised to 15 bits with a step per group of columns, as two bytes that the tensor
// instruction for bytes takes as two columns: q = 128 high + low. It has eight columns: so groups
// have columns of their own, too. The row's numbers stand in the columns of their group, zeros in
// the others, and the sums of four groups come out side by side, without a stop between groups. A
// lane then has the sums of two rows of weights and of the groups whose scales it reads itself.
#pragma once

#include "kernels/cuda/unit.cuh"

namespace vitrine::cuda {

// Sixteen zeros in shared memory; whoever brings the row there writes them.
__device__ inline uint4* zero_row() {
  __shared__ uint4 zeros;
  return &zeros;
}

// Of the row, which does not change once the block has met.
__device__ inline void load_columns(std::uint32_t (&b)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(address));
}

// Bytes from the high to the low ones of a row: low ones begin in other banks.
__host__ __device__ constexpr int one_row_stride(int cols) { return cols + 16; }

// What a group of a row has: its step, and the sum of its columns: q as an integer's bits, or,
// where the format has minimums, times the step.
struct OneGroup {
  float step, sum;
};

// Fours of columns, each of a group of kGroup that neighbouring lanes have, as {high, low} bytes in
// the order that bytes() has. Several together: each is a chain of shuffles. With a number that is
// none or infinite no output of the group is finite.
template <typename F, int kFours>
__device__ inline void quantise(const float4* x, uint2 (&bytes)[kFours],
                                OneGroup (&group)[kFours]) {
  constexpr int kLanes = F::kGroup / 4, kMost = 127 * 128 + 63;
  // The last sixteen bits of the floats: 128 (high + 128) + (low + 64), with q = 128 high + low.
  constexpr int kUp = 128 * 128 + 64, kBase = 0x4B400000 + kUp;
  constexpr float kAdd = 12582912.0f + kUp;  // its bits: kBase
  unsigned most[kFours];
  int sum[kFours];
#pragma unroll
  for (int n = 0; n < kFours; ++n) {
    auto bits = [](float v) { return __float_as_uint(v) & 0x7FFFFFFF; };  // above all: no number
    most[n] = max(max(bits(x[n].x), bits(x[n].y)), max(bits(x[n].z), bits(x[n].w)));
  }
#pragma unroll
  for (int o = 1; o < kLanes; o *= 2)
#pragma unroll
    for (int n = 0; n < kFours; ++n)
      most[n] = max(most[n], __shfl_xor_sync(0xffffffff, most[n], o));
#pragma unroll
  for (int n = 0; n < kFours; ++n) {
    float amax = __uint_as_float(most[n]), inverse = 0;
    group[n].step = amax * (1.0f / kMost);
    if (amax < 2e-34f)  // the step would be no normal number
      group[n].step = 0;
    else
      asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(group[n].step));
    auto level = [&](float v) { return __float_as_int(fmaf(v, inverse, kAdd)); };
    int q[4] = {level(x[n].x), level(x[n].y), level(x[n].z), level(x[n].w)};
    sum[n] = (q[0] - kBase + q[1] - kBase) + (q[2] - kBase + q[3] - kBase);
    std::uint32_t even = __byte_perm(q[0], q[1], 0x5410), odd = __byte_perm(q[2], q[3], 0x5410);
    std::uint32_t high = (even >> 7 & 0x00FF00FF) | (odd << 1 & 0xFF00FF00),
                  low = (even & 0x007F007F) | (odd << 8 & 0x7F007F00);
    bytes[n] = {high ^ 0x80808080, ((low | 0x80808080) - 0x40404040) ^ 0x80808080};
  }
#pragma unroll
  for (int o = 1; o < kLanes; o *= 2)
#pragma unroll
    for (int n = 0; n < kFours; ++n) sum[n] += __shfl_xor_sync(0xffffffff, sum[n], o);
#pragma unroll
  for (int n = 0; n < kFours; ++n)
    group[n].sum = F::kMin ? static_cast<float>(sum[n]) * group[n].step : __int_as_float(sum[n]);
}

// The lane's view of the row: high bytes, low bytes.
template <typename F>
struct OneRow {
  static constexpr int kSets = F::kCols / F::kGroup / 4;  // of four groups
  unsigned mine, zeros;  // addresses for load_columns in the unit: where the lane's column is, else
  const OneGroup* groups;  // of the row

  __device__ OneRow(const std::byte* x, const float* row_groups, int cols, int lane)
      : mine(static_cast<unsigned>(__cvta_generic_to_shared(x)) + lane / 8 * 16 +
             lane % 2 * one_row_stride(cols)),
        zeros(static_cast<unsigned>(__cvta_generic_to_shared(zero_row()))),
        groups(reinterpret_cast<const OneGroup*>(row_groups)) {}

  // acc[i]: of row lane / 4 + 8 i, over the lane's groups.
  __device__ void multiply(const std::uint32_t* unit, int u, float (&acc)[2], int lane) const {
    OneScales<kSets> scales = F::one_scales(unit, lane);
    int sum[kSets][4] = {};
    unsigned x = mine + u * F::kCols;
#pragma unroll
    for (int c = 0; c < F::kCols / 64; ++c) {
      typename F::Chunk chunk = F::load(unit, c, lane);
      // A pair of columns is of the group kSets n + s in the s-th set; of groups of 16, of which an
      // instruction has two, of the n-th of four.
      int pair = lane % 8 / 2;
      bool here = kSets == 1   ? pair == 2 * c + lane / 16
                  : kSets == 2 ? pair == c
                               : pair == lane / 8;
      std::uint32_t b[4];
      load_columns(b, here ? x + c * 64 : zeros);
#pragma unroll
      for (int h = 0; h < 2; ++h) {  // 32 columns
        std::uint32_t a[4];
        F::bytes(chunk, h, a);
        mma_bytes(sum[kSets == 1 ? 0 : kSets == 2 ? h : c], a, b[2 * h], b[2 * h + 1]);
      }
    }
    const OneGroup* of = groups + u * (F::kCols / F::kGroup);
#pragma unroll
    for (int s = 0; s < kSets; ++s) {
      OneGroup group = of[F::kGroup == 16 ? 4 * s + lane % 4 : kSets * (lane % 4) + s];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        int dot = sum[s][2 * i] * 128 + sum[s][2 * i + 1];
        if constexpr (!F::kMin) dot -= F::kOffset * __float_as_int(group.sum);
        acc[i] = fmaf(scales.scale[i][s] * group.step, static_cast<float>(dot), acc[i]);
        if constexpr (F::kMin) acc[i] = fmaf(-scales.min[i][s], group.sum, acc[i]);
      }
    }
  }
};

}  // namespace vitrine::cuda
