// The cuts of a draw (draw.cu): top_k, top_p and min_p. Bound by reading the logits from the
// second-level cache, once to measure and once for each cut.
#include "kernels/cuda/draw.cuh"

namespace vitrine::cuda::drawing {
namespace {

constexpr int kCutThreads = 1024;

__global__ void measure_kernel(Tally* tallies, const Best* best, const DrawRow* rows,
                               const float* logits, int V) {
  __shared__ u64 sums[kBuckets];
  __shared__ u32 counts[kBuckets];
  pdl_wait();
  pdl_trigger();
  int m = blockIdx.y, chunk = blockIdx.x, chunks = gridDim.x;
  if (rows[m].slot < 0 || !is_cut(rows[m])) return;
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

// What the block of `cut` keeps. Lists hold a bucket's candidates while they are few.
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

template <typename F>
__device__ void for_each_in(const Row& r, int bucket, u64 limit, F&& f) {
  for (int i = threadIdx.x; i < r.V; i += kCutThreads) {
    float x = fminf(r.logits[i], FLT_MAX);
    if (r.scale.bucket(x) != bucket) continue;
    u64 key = key_of(x, i);
    if (key <= limit) f(key, x);
  }
}

// Running sums over the buckets; two of them to a thread.
__device__ void sum_up(Work& w, const Tally& tally) {
  static_assert(kBuckets == 2 * kCutThreads);
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
    for (int i = threadIdx.x; i < 256; i += kCutThreads)
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

__device__ Cut cut_row(Work& w, const Row& r, const DrawRow& row, const Tally& tally) {
  sum_up(w, tally);
  Cut cut{kBuckets, ~u64{0}, w.sums[kBuckets - 1]};
  if (row.top_k > 0) cut = keep_first(w, r, cut, static_cast<u32>(row.top_k));
  if (row.top_p < 1) {
    double target = ceil(row.top_p * static_cast<double>(cut.total));
    u64 whole = target >= static_cast<double>(cut.total) ? cut.total : static_cast<u64>(target);
    cut = reach(w, r, cut, whole > 0 ? whole : 1);
  }
  if (row.max_nats < INFINITY) cut = keep_within(w, r, cut, row.max_nats);
  return cut;
}

__global__ void __launch_bounds__(kCutThreads)
    cut_kernel(Space space, const DrawRow* rows, const float* logits, int V, int chunks) {
  extern __shared__ u64 shared[];
  pdl_wait();
  pdl_trigger();
  int m = blockIdx.x;
  DrawRow row = rows[m];
  if (row.slot < 0 || !is_cut(row)) return;
  Best top = row_best(space.best + m * kMaxChunks, chunks);
  if (top.nan || top.id < 0) return;
  Row r{logits + std::int64_t{m} * V, V, {top.logit, row.scale}};
  Cut cut = cut_row(*reinterpret_cast<Work*>(shared), r, row, space.tallies[m]);
  if (threadIdx.x == 0) space.cuts[m] = cut;
}

}  // namespace

void cut_rows(const Context& c, const Space& space, const DrawRow* rows, const float* logits,
              std::int64_t M, int V, int chunks) {
  dim3 grid(static_cast<unsigned>(chunks), static_cast<unsigned>(M));
  launch(c, measure_kernel, grid, kScanThreads, 0, space.tallies, space.best, rows, logits, V);
  static int allowed = 0;
  allow_shared(c, cut_kernel, static_cast<int>(sizeof(Work)), allowed);
  launch(c, cut_kernel, static_cast<unsigned>(M), kCutThreads, sizeof(Work), space, rows, logits, V,
         chunks);
}

}  // namespace vitrine::cuda::drawing
