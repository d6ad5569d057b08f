// The rows of a product with few of them, as operands of the tensor instruction in shared memory.
//
// Each token has its share of the block's threads. A thread loads the four columns that a lane of
// the instruction has of sixteen, so that it writes them as they are read. The factor of a row (its
// norm's, and the inverse of the power of two that keeps f16 in range) is left to the outputs.
#pragma once

#include "kernels/cuda/matmul_kernels.cuh"
#include "kernels/cuda/matmul_one.cuh"

namespace vitrine::cuda {

inline constexpr int kFewVectors = 4096;  // fours of columns per block

// Bytes of a token's operands (tokens start in different banks); its sums by group of columns:
// groups of 32, or what one row needs (matmul_one.cuh).
template <typename F>
struct RowBytes {
  static __host__ __device__ int operands(int cols) { return cols * (F::kHalf ? 2 : 4) + 64; }
  static __host__ __device__ int sums(int cols, bool one) {
    return one && F::kLevels ? cols / F::kGroup * 2 : F::kMin ? cols / 32 + 1 : 0;
  }
};

// Columns 2q, 2q + 1, 2q + 8, 2q + 9 of sixteen, with q = i % 4; zero past `end`. kPairs: rows
// begin at 8 bytes and their lengths are even.
template <bool kPairs>
__device__ inline float4 load_four(const float* row, int i, int end) {
  int k = i / 4 * 16 + i % 4 * 2;
  if constexpr (kPairs) {
    float2 a{}, b{};
    if (k < end) a = __ldcg(reinterpret_cast<const float2*>(row + k));
    if (k + 8 < end) b = __ldcg(reinterpret_cast<const float2*>(row + k + 8));
    return {a.x, a.y, b.x, b.y};
  }
  auto at = [&](int j) { return j < end ? __ldcg(row + j) : 0; };
  return {at(k), at(k + 1), at(k + 8), at(k + 9)};
}

// A four of a token as operands: [16 columns][4 lanes] {b0, b1}, or {hi b0, hi b1, lo b0, lo b1}.
// Returns the sum of what was kept.
template <bool kHalf>
__device__ inline float store_four(std::uint32_t* to, int i, float4 x) {
  std::uint32_t hi[2] = {pack2<kHalf>(x.x, x.y), pack2<kHalf>(x.z, x.w)};
  float2 a = unpack2<kHalf>(hi[0]), b = unpack2<kHalf>(hi[1]);
  if constexpr (kHalf) {
    reinterpret_cast<uint2*>(to)[i] = {hi[0], hi[1]};
  } else {
    reinterpret_cast<uint4*>(to)[i] = {hi[0], hi[1], pack2<kHalf>(x.x - a.x, x.y - a.y),
                                       pack2<kHalf>(x.z - b.x, x.w - b.y)};
  }
  return (a.x + a.y) + (b.x + b.y);
}

// kOne: one row, for OneRow where the format has levels.
template <typename F, int kWarps, bool kOne>
class RowLoader {
  static constexpr bool kBytes = kOne && F::kLevels, kScaled = F::kHalf && !kBytes;
  static constexpr int kMost = kFewVectors / (32 * kWarps);  // fours of a thread

 public:
  // `meet`: [kWarps] in shared memory.
  __device__ RowLoader(const Job& job, int tokens, int cols, float2* meet)
      : job_(job), meet_(meet), tokens_(kOne ? 1 : tokens), fours_(cols / 4) {
    warps_ = kWarps / tokens_;
    threads_ = warps_ * 32;
    token_ = kOne ? 0 : threadIdx.x / threads_;
    thread_ = kOne ? threadIdx.x : threadIdx.x % threads_;
  }

  __device__ void load_norm() {
    if (job_.norm) load(weight_, job_.norm, job_.K);
  }
  // Once the rows are there.
  __device__ void load_row() {
    load(row_, job_.x + std::int64_t{token_} * job_.K, token_ < job_.T ? job_.K : 0);
  }

  // Columns past K and tokens past T are zero. Afterwards the block meets.
  __device__ void store(std::byte* operands, int operand_bytes, float* sums, int token_sums) {
    float square = 0, amax = 0;
    each([&](int j, int) {
      float4& x = row_[j];
      if (job_.norm) {
        const float4& w = weight_[j];
        square += (x.x * x.x + x.y * x.y) + (x.z * x.z + x.w * x.w);
        x = {x.x * w.x, x.y * w.y, x.z * w.z, x.w * w.w};
      }
      if (kScaled)
        amax = fmaxf(amax, fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w))));
    });
    float scale = 1;
    if (!kBytes && (kScaled || job_.norm)) bring(square, kScaled ? warp_max(amax) : 0);
    if constexpr (kScaled) {
      __syncthreads();
      scale = row_scale(total(token_).y).x;
    }
    if constexpr (kBytes)
      store_bytes(operands, sums);
    else
      store_operands(operands + token_ * operand_bytes, sums + token_ * token_sums, scale);
    if (kBytes && job_.norm) bring(square, 0);  // late: nobody waits for it
  }

  // Of the token that is the lane's number, or its remainder; after the block has met.
  __device__ float factor(int lane) const {
    if (!kScaled && !job_.norm) return 1;
    float2 both = total(kOne ? 0 : lane % tokens_);
    float f = job_.norm ? rsqrtf(both.x / static_cast<float>(job_.K) + job_.eps) : 1;
    return kScaled ? f * row_scale(both.y).y : f;
  }

 private:
  // The warp's share to meet_.
  __device__ void bring(float square, float amax) {
    square = warp_sum(square);
    if (threadIdx.x % 32 == 0) meet_[threadIdx.x / 32] = {square, amax};
  }
  __device__ void store_operands(std::byte* operands, float* sums, float scale) const {
    auto* to = reinterpret_cast<std::uint32_t*>(operands);
    each([&](int j, int i) {
      const float4& x = row_[j];
      float sum = 0;
      if (i < fours_)
        sum = store_four<F::kHalf>(to, i, {x.x * scale, x.y * scale, x.z * scale, x.w * scale});
      if constexpr (F::kMin) {  // eight lanes have a group
#pragma unroll
        for (int o = 1; o < 8; o *= 2) sum += __shfl_xor_sync(0xffffffff, sum, o);
        if (i < fours_ && threadIdx.x % 8 == 0) sums[i / 8] = sum;
      }
    });
  }
  __device__ void store_bytes(std::byte* operands, float* sums) const {
    constexpr int kLanes = F::kGroup / 4, kTogether = 2;
    auto* high = reinterpret_cast<std::uint32_t*>(operands);
    auto* low = reinterpret_cast<std::uint32_t*>(operands + one_row_stride(fours_ * 4));
    if (threadIdx.x == 0) *zero_row() = {};
#pragma unroll
    for (int j = 0; j < kMost; j += kTogether) {
      if (j * threads_ >= fours_) break;
      uint2 bytes[kTogether];
      OneGroup group[kTogether];
      quantise<F, kTogether>(row_ + j, bytes, group);
#pragma unroll
      for (int n = 0; n < kTogether; ++n) {
        int i = (j + n) * threads_ + thread_;
        if (i >= fours_) continue;
        high[i] = bytes[n].x, low[i] = bytes[n].y;
        if (i % kLanes == 0) reinterpret_cast<OneGroup*>(sums)[i / kLanes] = group[n];
      }
    }
  }
  // f(which of the thread's, which of the token's) for the thread's fours.
  template <typename Call>
  __device__ void each(Call f) const {
#pragma unroll
    for (int j = 0; j < kMost; ++j)
      if (j * threads_ < fours_) f(j, j * threads_ + thread_);
  }
  __device__ void load(float4 (&to)[kMost], const float* row, int end) {
    if (job_.K % 2 == 0)
      each([&](int j, int i) { to[j] = load_four<true>(row, i, end); });
    else
      each([&](int j, int i) { to[j] = load_four<false>(row, i, end); });
  }
  // Of what the token's warps brought to meet_, in order.
  __device__ float2 total(int token) const {
    float2 out{0, 0};
#pragma unroll
    for (int w = 0; w < kWarps; ++w)
      if (kOne || w < warps_) {
        float2 one = meet_[token * warps_ + w];
        out = {out.x + one.x, fmaxf(out.y, one.y)};
      }
    return out;
  }

  const Job& job_;
  float2* meet_;
  int tokens_, fours_, warps_, threads_, token_, thread_;
  float4 row_[kMost], weight_[kMost];
};

}  // namespace vitrine::cuda
