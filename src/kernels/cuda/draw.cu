// Draws tokens from logits as sampling/ does on the host: the order of candidates is descending
// logit, then ascending id; shares are integers (base/draw_weight.h), so every sum is exact and the
// token is the host's, whichever way it is found. Compiled without contraction.
//
//   scan    many blocks a row: the best token, and whether there is a NaN. Where all rows are
//           greedy, the last block of a row ends it
//   measure many blocks a row: shares and counts by distance from the best, in 2048 buckets
//   choose  one block a row: every cut is a prefix of the order. Sums over buckets find the bucket
//   in
//           which it ends, a look at that bucket's candidates the place.
//
// Bound by reading the logits from the second-level cache: once for greedy rows, and once for each
// cut and the draw.
#include <cfloat>

#include "base/draw_weight.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"

namespace vitrine::cuda {
namespace {

using u32 = unsigned;
using u64 = unsigned long long;

constexpr int kScanThreads = 256, kChooseThreads = 1024;
constexpr int kBuckets = 2048;  // 64 to the nat; what is 32 nats away has no share
constexpr double kBucketsPerNat = 64;
constexpr int kMaxChunks = 32;
constexpr int kIdBits = 20;
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

__device__ Best better(Best a, Best b) {
  bool first = a.id >= 0 && (b.id < 0 || a.logit > b.logit || (a.logit == b.logit && a.id < b.id));
  Best out = first ? a : b;
  out.nan = a.nan | b.nan;
  return out;
}

__device__ Best warp_best(Best x) {
  for (int offset = 16; offset > 0; offset /= 2) {
    Best other{__shfl_xor_sync(0xffffffff, x.logit, offset),
               __shfl_xor_sync(0xffffffff, x.id, offset),
               __shfl_xor_sync(0xffffffff, x.nan, offset), 0};
    x = better(x, other);
  }
  return x;
}

// Of the row, from those of its chunks. Every warp may call it.
__device__ Best row_best(const Best* chunks, int n) {
  int lane = threadIdx.x % 32;
  Best mine{0, -1, 0, 0};
  if (lane < n) {
    int4 v = __ldcg(reinterpret_cast<const int4*>(chunks + lane));
    mine = {__int_as_float(v.x), v.y, v.z, 0};
  }
  return warp_best(mine);
}

// The row's token where there is no choice.
__device__ DrawnRow best_token(const Best& top) {
  if (top.nan) return {0, 1};
  return top.id < 0 ? DrawnRow{0, 2} : DrawnRow{top.id, 0};
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

// `tallies`: cleared for measure, or null: then all rows are greedy, and end here.
__global__ void __launch_bounds__(kScanThreads)
    scan_kernel(DrawnRow* drawn, std::int32_t* last, unsigned* tickets, Best* best, Tally* tallies,
                const DrawRow* rows, const float* logits, int V) {
  __shared__ Best warps[kScanThreads / 32];
  pdl_wait();
  pdl_trigger();
  int m = blockIdx.y, chunk = blockIdx.x, chunks = gridDim.x;
  if (rows[m].slot < 0) return;
  if (tallies != nullptr)
    for (int i = chunk * kScanThreads + threadIdx.x; i < kBuckets; i += chunks * kScanThreads)
      tallies[m].sums[i] = 0, tallies[m].counts[i] = 0;
  Best mine{0, -1, 0, 0};
  each_logit(logits + std::int64_t{m} * V, V, chunk, chunks, [&](float x, int i) {
    if (isnan(x)) mine.nan = 1;
    if (x > -INFINITY) mine = better(mine, {fminf(x, FLT_MAX), i, mine.nan, 0});
  });
  mine = warp_best(mine);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kScanThreads / 32; ++w) mine = better(mine, warps[w]);
    best[m * kMaxChunks + chunk] = mine;
  }
  if (tallies != nullptr || !last_block(tickets + m, static_cast<unsigned>(chunks))) return;
  if (threadIdx.x >= 32) return;
  DrawnRow out = best_token(row_best(best + m * kMaxChunks, chunks));
  if (threadIdx.x != 0) return;
  drawn[m] = out;
  last[rows[m].slot] = out.token;
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

__global__ void measure_kernel(Tally* tallies, const Best* best, const DrawRow* rows,
                               const float* logits, int V) {
  __shared__ u64 sums[kBuckets];
  __shared__ u32 counts[kBuckets];
  pdl_wait();
  pdl_trigger();
  int m = blockIdx.y, chunk = blockIdx.x, chunks = gridDim.x;
  if (rows[m].slot < 0 || rows[m].top_k == 1) return;
  Best top = row_best(best + m * kMaxChunks, chunks);
  if (top.nan || top.id < 0) return;
  Scale s{top.logit, rows[m].scale};
  for (int i = threadIdx.x; i < kBuckets; i += kScanThreads) sums[i] = 0, counts[i] = 0;
  __syncthreads();
  each_logit(logits + std::int64_t{m} * V, V, chunk, chunks, [&](float logit, int) {
    float x = fminf(logit, FLT_MAX);
    int b = s.bucket(x);
    if (b >= kBuckets) return;
    atomicAdd(&counts[b], 1U);
    atomicAdd(&sums[b], static_cast<u64>(weight(s.nats(x))));
  });
  __syncthreads();
  for (int i = threadIdx.x; i < kBuckets; i += kScanThreads)
    if (counts[i] != 0) {
      atomicAdd(&tallies[m].counts[i], counts[i]);
      atomicAdd(&tallies[m].sums[i], sums[i]);
    }
}

// A candidate's place in the order: smaller comes first.
__device__ u64 key_of(float logit, int id) {
  u32 bits = __float_as_uint(logit + 0.0f);  // -0 becomes 0
  u32 ascending = bits & 0x80000000U ? ~bits : bits | 0x80000000U;
  return (static_cast<u64>(~ascending) << kIdBits) | static_cast<u32>(id);
}

// The candidates up to the one with this key, in this bucket; all of the buckets before it.
struct Cut {
  int bucket;
  u64 key;
  u64 total;  // their share
};

// What the block of `choose` keeps. Lists hold a bucket's candidates while they are few.
struct Work {
  static constexpr int kList = 1024;
  u64 sums[kBuckets];    // running
  u32 counts[kBuckets];  // running
  u64 keys[kList], shares[kList];
  u64 digit_shares[256];
  u32 digit_counts[256];
  u64 warp_shares[32];
  u32 warp_counts[32];
  u64 key, share, upto;
  u32 count;
  int n, bucket;
};

struct Row {
  const float* logits;
  int V;
  Scale scale;
};

template <typename F>
__device__ void for_each_in(const Row& r, int bucket, u64 limit, F&& f) {
  for (int i = threadIdx.x; i < r.V; i += kChooseThreads) {
    float x = fminf(r.logits[i], FLT_MAX);
    if (r.scale.bucket(x) != bucket) continue;
    u64 key = key_of(x, i);
    if (key <= limit) f(key, x);
  }
}

// Running sums over the buckets; two of them to a thread.
__device__ void sum_up(Work& w, const Tally& tally) {
  static_assert(kBuckets == 2 * kChooseThreads);
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  u64 s0 = tally.sums[2 * t], s = s0 + tally.sums[2 * t + 1];
  u32 n0 = tally.counts[2 * t], n = n0 + tally.counts[2 * t + 1];
  u64 pair_s = s;
  u32 pair_n = n;
  for (int offset = 1; offset < 32; offset *= 2) {
    u64 os = __shfl_up_sync(0xffffffff, s, offset);
    u32 on = __shfl_up_sync(0xffffffff, n, offset);
    if (lane >= offset) s += os, n += on;
  }
  if (lane == 31) w.warp_shares[warp] = s, w.warp_counts[warp] = n;
  __syncthreads();
  if (t == 0)
    for (int i = 1; i < 32; ++i)
      w.warp_shares[i] += w.warp_shares[i - 1], w.warp_counts[i] += w.warp_counts[i - 1];
  __syncthreads();
  u64 before_s = s - pair_s + (warp > 0 ? w.warp_shares[warp - 1] : 0);
  u32 before_n = n - pair_n + (warp > 0 ? w.warp_counts[warp - 1] : 0);
  w.sums[2 * t] = before_s + s0, w.sums[2 * t + 1] = before_s + pair_s;
  w.counts[2 * t] = before_n + n0, w.counts[2 * t + 1] = before_n + pair_n;
  __syncthreads();
}

// The bucket in which a running sum reaches `target`, > 0; kBuckets when none does.
template <typename T>
__device__ int crossing(Work& w, const T* running, T target) {
  if (threadIdx.x == 0) w.bucket = kBuckets;
  __syncthreads();
  for (int b = 2 * threadIdx.x; b < 2 * static_cast<int>(threadIdx.x) + 2; ++b)
    if (running[b] >= target && (b == 0 || running[b - 1] < target)) w.bucket = b;
  __syncthreads();
  int b = w.bucket;
  __syncthreads();
  return b;
}

// The many candidates of a bucket are told apart eight bits of the key at a time, from the top.
__device__ void resolve_many(Work& w, const Row& r, int bucket, u64 limit, bool by_count,
                             u64 target) {
  u64 prefix = 0, before = 0;
  for (int shift = 48; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < 256; i += kChooseThreads)
      w.digit_shares[i] = 0, w.digit_counts[i] = 0;
    __syncthreads();
    for_each_in(r, bucket, limit, [&](u64 key, float x) {
      if (key >> (shift + 8) != prefix) return;
      int digit = static_cast<int>(key >> shift & 255);
      atomicAdd(&w.digit_counts[digit], 1U);
      atomicAdd(&w.digit_shares[digit], static_cast<u64>(weight(r.scale.nats(x))));
    });
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = 0;
      u64 skipped = 0;
      for (; digit < 255; ++digit) {
        u64 step = by_count ? w.digit_counts[digit] : w.digit_shares[digit];
        if (step >= target) break;
        target -= step;
        skipped += w.digit_shares[digit];
      }
      w.key = prefix << 8 | static_cast<u64>(digit);
      w.share = target;
      w.upto = before + skipped;
      if (shift == 0) w.upto += w.digit_shares[digit];
    }
    __syncthreads();
    prefix = w.key, target = w.share, before = w.upto;
    __syncthreads();
  }
}

// The candidate of the bucket (those with keys up to `limit`) at which the running count or share
// reaches `target`; its key in w.key, the share of all up to it in w.upto.
__device__ void resolve(Work& w, const Row& r, int bucket, u64 limit, bool by_count, u64 target) {
  if (threadIdx.x == 0) w.n = 0;
  __syncthreads();
  for_each_in(r, bucket, limit, [&](u64 key, float x) {
    int at = atomicAdd(&w.n, 1);
    if (at < Work::kList) w.keys[at] = key, w.shares[at] = weight(r.scale.nats(x));
  });
  __syncthreads();
  if (w.n > Work::kList) {
    __syncthreads();
    return resolve_many(w, r, bucket, limit, by_count, target);
  }
  int mine = threadIdx.x;
  if (mine < w.n) {
    u64 key = w.keys[mine], before = 0, shares = 0;
    for (int i = 0; i < w.n; ++i)
      if (w.keys[i] < key) before += by_count ? 1 : w.shares[i], shares += w.shares[i];
    u64 own = by_count ? 1 : w.shares[mine];
    if (before < target && before + own >= target) w.key = key, w.upto = shares + w.shares[mine];
  }
  __syncthreads();
}

// The prefix of `cut` whose share reaches `target`, which is at most cut.total.
__device__ Cut reach(Work& w, const Row& r, const Cut& cut, u64 target) {
  int b = crossing(w, w.sums, target);
  if (b > cut.bucket) b = cut.bucket;
  u64 before = b > 0 ? w.sums[b - 1] : 0;
  resolve(w, r, b, b == cut.bucket ? cut.key : ~u64{0}, false, target - before);
  Cut out{b, w.key, before + w.upto};
  __syncthreads();
  return out;
}

__device__ Cut keep_first(Work& w, const Row& r, const Cut& cut, u32 k) {
  int b = crossing(w, w.counts, k);
  if (b >= kBuckets) return cut;
  u32 before = b > 0 ? w.counts[b - 1] : 0;
  resolve(w, r, b, ~u64{0}, true, k - before);
  Cut out{b, w.key, (b > 0 ? w.sums[b - 1] : 0) + w.upto};
  __syncthreads();
  return out;
}

__device__ Cut keep_within(Work& w, const Row& r, const Cut& cut, double limit) {
  double place = limit * kBucketsPerNat;
  int b = place < kBuckets ? static_cast<int>(place) : kBuckets;
  if (b >= kBuckets || b > cut.bucket) return cut;
  if (threadIdx.x == 0) w.key = 0, w.upto = 0;
  __syncthreads();
  for_each_in(r, b, b == cut.bucket ? cut.key : ~u64{0}, [&](u64 key, float x) {
    if (r.scale.nats(x) > limit) return;
    atomicMax(&w.key, key);
    atomicAdd(&w.upto, static_cast<u64>(weight(r.scale.nats(x))));
  });
  __syncthreads();
  Cut out{b, w.key, (b > 0 ? w.sums[b - 1] : 0) + w.upto};
  __syncthreads();
  return out;
}

__device__ int choose(Work& w, const Row& r, const DrawRow& row, const Tally& tally) {
  sum_up(w, tally);
  Cut cut{kBuckets, ~u64{0}, w.sums[kBuckets - 1]};
  if (row.top_k > 0) cut = keep_first(w, r, cut, static_cast<u32>(row.top_k));
  if (row.top_p < 1) {
    double target = ceil(row.top_p * static_cast<double>(cut.total));
    u64 whole = target >= static_cast<double>(cut.total) ? cut.total : static_cast<u64>(target);
    cut = reach(w, r, cut, whole > 0 ? whole : 1);
  }
  if (row.max_nats < INFINITY) cut = keep_within(w, r, cut, row.max_nats);
  u64 place = __umul64hi(row.bits, cut.total);
  Cut drawn = reach(w, r, cut, place + 1);
  return static_cast<int>(drawn.key & ((u64{1} << kIdBits) - 1));
}

__global__ void __launch_bounds__(kChooseThreads)
    choose_kernel(DrawnRow* drawn, std::int32_t* last, const Tally* tallies, const Best* best,
                  const DrawRow* rows, const float* logits, int V, int chunks) {
  extern __shared__ u64 shared[];
  pdl_wait();
  pdl_trigger();
  int m = blockIdx.x;
  DrawRow row = rows[m];
  if (row.slot < 0) return;
  Best top = row_best(best + m * kMaxChunks, chunks);
  DrawnRow out = best_token(top);
  if (out.status == 0 && row.top_k != 1) {
    Row r{logits + std::int64_t{m} * V, V, {top.logit, row.scale}};
    out.token = choose(*reinterpret_cast<Work*>(shared), r, row, tallies[m]);
  }
  if (threadIdx.x != 0) return;
  drawn[m] = out;
  last[row.slot] = out.token;
}

}  // namespace

void draw(const Context& c, DrawnRow* drawn, std::int32_t* last, const DrawRow* rows,
          const float* logits, std::int64_t M, std::int64_t V, bool greedy) {
  auto* best = reinterpret_cast<Best*>(c.workspace);
  auto* tallies = reinterpret_cast<Tally*>(c.workspace + M * kMaxChunks * sizeof(Best));
  if (V > static_cast<std::int64_t>(kMaxVocab) ||
      M * static_cast<std::int64_t>(kMaxChunks * sizeof(Best) + sizeof(Tally)) > c.workspace_bytes)
    fail(c, cudaErrorInvalidValue, "drawing from more logits than there is room for");
  int chunks = M <= 16 ? kMaxChunks : 8;
  dim3 grid(static_cast<unsigned>(chunks), static_cast<unsigned>(M));
  launch(c, scan_kernel, grid, kScanThreads, 0, drawn, last, c.tickets, best,
         greedy ? nullptr : tallies, rows, logits, V);
  if (greedy) return;
  launch(c, measure_kernel, grid, kScanThreads, 0, tallies, best, rows, logits, V);
  static int allowed = 0;
  allow_shared(c, choose_kernel, static_cast<int>(sizeof(Work)), allowed);
  launch(c, choose_kernel, static_cast<unsigned>(M), kChooseThreads, sizeof(Work), drawn, last,
         tallies, best, rows, logits, V, chunks);
}

}  // namespace vitrine::cuda
