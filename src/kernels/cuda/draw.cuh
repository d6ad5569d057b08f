// What the kernels of a draw share: draw.cu (which tells how they work together) and draw_cut.cu.
#pragma once

#include <cfloat>

#include "base/draw_race.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"

namespace vitrine::cuda::drawing {

using u32 = unsigned;
using u64 = unsigned long long;

inline constexpr int kScanThreads = 256;
inline constexpr int kBuckets = 2048;  // 64 to the nat; what is 32 nats away has no share
inline constexpr double kBucketsPerNat = 64;
inline constexpr int kMaxChunks = 32;
inline constexpr int kIdBits = 20;
static_assert(kMaxVocab == std::size_t{1} << kIdBits);

struct Best {
  float logit;
  int id;  // -1: every logit is -inf
  int nan;
  int unused;
};

// Of one row, in the workspace.
struct Tally {
  u64 sums[kBuckets];
  u32 counts[kBuckets];
};

// The candidates up to the one with this key, in this bucket; all of the buckets before it.
struct Cut {
  int bucket;
  u64 key;
  u64 total;  // their share
};

// All a draw needs of the workspace, by row.
struct Space {
  Best* best;      // (M,kMaxChunks)
  int4* leaders;   // (M,kMaxChunks), packed
  Cut* cuts;       // (M)
  Tally* tallies;  // (M)
};
inline constexpr std::int64_t kRowBytes =
    kMaxChunks * (sizeof(Best) + sizeof(int4)) + sizeof(Cut) + sizeof(Tally);

// True: some of the row's candidates may be cut, and more than one left.
__device__ inline bool is_cut(const DrawRow& row) {
  return row.top_k > 1 || (row.top_k < 1 && (row.top_p < 1 || row.max_nats < INFINITY));
}

__device__ inline Best better(Best a, Best b) {
  bool first = a.id >= 0 && (b.id < 0 || a.logit > b.logit || (a.logit == b.logit && a.id < b.id));
  Best out = first ? a : b;
  out.nan = a.nan | b.nan;
  return out;
}

__device__ inline Best warp_best(Best x) {
  for (int offset = 16; offset > 0; offset /= 2) {
    Best other{__shfl_xor_sync(0xffffffff, x.logit, offset),
               __shfl_xor_sync(0xffffffff, x.id, offset),
               __shfl_xor_sync(0xffffffff, x.nan, offset), 0};
    x = better(x, other);
  }
  return x;
}

// Of the row, from those of its chunks. Every warp may call it.
__device__ inline Best row_best(const Best* chunks, int n) {
  int lane = threadIdx.x % 32;
  Best mine{0, -1, 0, 0};
  if (lane < n) {
    int4 v = __ldcg(reinterpret_cast<const int4*>(chunks + lane));
    mine = {__int_as_float(v.x), v.y, v.z, 0};
  }
  return warp_best(mine);
}

// f(logit, id) for the thread's share of a chunk of the row, several loaded at a time.
template <typename Call>
__device__ void each_logit(const float* row, int V, int chunk, int chunks, Call f) {
  constexpr int kAhead = 8;
  int first = static_cast<int>(std::int64_t{V} * chunk / chunks) + static_cast<int>(threadIdx.x);
  int end = static_cast<int>(std::int64_t{V} * (chunk + 1) / chunks);
  for (; first < end; first += kAhead * kScanThreads) {
    float x[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j)
      x[j] = first + j * kScanThreads < end ? row[first + j * kScanThreads] : -INFINITY;
#pragma unroll
    for (int j = 0; j < kAhead; ++j)
      if (first + j * kScanThreads < end) f(x[j], first + j * kScanThreads);
  }
}

// How far below the best, as the host computes it.
struct Scale {
  double max, scale;
  __device__ double nats(float logit) const { return (max - logit) * scale; }
  __device__ int bucket(float logit) const {
    double b = nats(logit) * kBucketsPerNat;
    return b < kBuckets ? static_cast<int>(b) : kBuckets;
  }
};

// A candidate's place in the order: smaller comes first.
__device__ inline u64 key_of(float logit, int id) {
  u32 bits = __float_as_uint(logit + 0.0f);  // -0 becomes 0
  u32 ascending = bits & 0x80000000U ? ~bits : bits | 0x80000000U;
  return (static_cast<u64>(~ascending) << kIdBits) | static_cast<u32>(id);
}

struct Row {
  const float* logits;
  int V;
  Scale scale;
};

// Fills in space.cuts of the rows that have one, from best and cleared tallies.
void cut_rows(const Context& c, const Space& space, const DrawRow* rows, const float* logits,
              std::int64_t M, int V, int chunks);

}  // namespace vitrine::cuda::drawing
