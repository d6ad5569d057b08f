// Draws tokens from logits as sampling/ does on the host: the order of candidates is descending
// logit, then ascending id; shares are integers (base/draw_weight.h), so every sum is exact; the
// token is the winner of a race (base/draw_race.h), in whichever order the candidates are looked at.
// Compiled without contraction.
//
//   scan    many blocks a row: the best token, and whether there is a NaN. Where all rows are
//           greedy, the last block of a row ends it
//   measure many blocks a row: shares and counts by distance from the best, in 2048 buckets
//   cut     one block a row: every cut is a prefix of the order. Sums over buckets find the bucket
//           in which it ends, a look at that bucket's candidates the place
//   race    many blocks a row: the time of every candidate that is left and may still win. The last
//           block of a row ends it
//
// Rows without a cut skip measure and cut. Bound by reading the logits from the second-level
// cache: once for greedy rows, twice for those without a cut, and once more for each cut.
#include "kernels/cuda/draw.cuh"

namespace vitrine::cuda {
namespace {

using namespace drawing;

constexpr int kRaceThreads = 256;

// The row's token where there is no choice.
__device__ DrawnRow best_token(const Best& top) {
  if (top.nan) return {0, 1};
  return top.id < 0 ? DrawnRow{0, 2} : DrawnRow{top.id, 0};
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
  if (tallies != nullptr && is_cut(rows[m]))
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

__device__ int4 pack(const Leader& x) {
  return {__double2loint(x.time), __double2hiint(x.time), __float_as_int(x.logit), x.id};
}
__device__ Leader unpack(int4 x) { return {__hiloint2double(x.y, x.x), __int_as_float(x.z), x.w}; }

__device__ Leader warp_leader(Leader x) {
  for (int offset = 16; offset > 0; offset /= 2)
    x = ahead(x, {__shfl_xor_sync(0xffffffff, x.time, offset),
                  __shfl_xor_sync(0xffffffff, x.logit, offset),
                  __shfl_xor_sync(0xffffffff, x.id, offset)});
  return x;
}

// Of the warps' leaders, in all threads of the first warp.
__device__ Leader block_leader(Leader mine) {
  __shared__ int4 warps[kRaceThreads / 32];
  int lane = threadIdx.x % 32;
  mine = warp_leader(mine);
  if (lane == 0) warps[threadIdx.x / 32] = pack(mine);
  __syncthreads();
  return warp_leader(lane < kRaceThreads / 32 ? unpack(warps[lane]) : Leader{});
}

__device__ double warp_min(double x) {
  for (int offset = 16; offset > 0; offset /= 2)
    x = fmin(x, __shfl_xor_sync(0xffffffff, x, offset));
  return x;
}

// A warp takes a block of ids at a time. `bound` is the least time that it knows, at first the best
// token's.
__device__ Leader race_chunk(const Row& r, const Cut& cut, const DrawKey& key, int best, int chunk,
                             int chunks) {
  __shared__ double least[kRaceThreads];
  __shared__ int owners[kRaceThreads];
  __shared__ double best_time;
  if (threadIdx.x == kRaceThreads - 1) {  // the first warps make the noise of blocks
    double noise = id_noise(key, block_noise(key, best / kRaceBlock), best);
    best_time = noise / static_cast<double>(kWeightOne);
  }
  int blocks = (r.V + kRaceBlock - 1) / kRaceBlock;
  int first = static_cast<int>(std::int64_t{blocks} * chunk / chunks);
  int end = static_cast<int>(std::int64_t{blocks} * (chunk + 1) / chunks);
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  double bound = INFINITY;
  Leader leader;
  for (; first < end; first += kRaceThreads) {
    int mine = first + static_cast<int>(threadIdx.x);
    if (mine < end) {
      BlockNoise noise = block_noise(key, mine);
      least[threadIdx.x] = noise.least, owners[threadIdx.x] = noise.id;
    }
    __syncthreads();
    bound = fmin(bound, best_time);
    int n = min(end - first, kRaceThreads);
    for (int b = warp; b < n; b += kRaceThreads / 32) {
      BlockNoise noise{least[b], owners[b]};
      bool ran = false;
#pragma unroll
      for (int j = 0; j < kRaceBlock; j += 32) {
        int id = (first + b) * kRaceBlock + j + lane;
        if (id >= r.V) continue;
        float x = fminf(r.logits[id], FLT_MAX);
        int bucket = r.scale.bucket(x);
        if (bucket > cut.bucket || (bucket == cut.bucket && key_of(x, id) > cut.key)) continue;
        u64 share = weight(r.scale.nats(x));
        if (!may_lead(bound, noise.least, share)) continue;
        leader = ahead(leader, {id_noise(key, noise, id) / static_cast<double>(share), x, id});
        ran = true;
      }
      if (__any_sync(0xffffffff, ran)) bound = warp_min(fmin(bound, leader.time));
    }
    __syncthreads();
  }
  return leader;
}

__global__ void __launch_bounds__(kRaceThreads)
    race_kernel(DrawnRow* drawn, std::int32_t* last, unsigned* tickets, Space space,
                const DrawRow* rows, const float* logits, int V) {
  pdl_wait();
  pdl_trigger();
  int m = blockIdx.y, chunk = blockIdx.x, chunks = gridDim.x;
  DrawRow row = rows[m];
  if (row.slot < 0) return;
  Best top = row_best(space.best + m * kMaxChunks, chunks);
  DrawnRow out = best_token(top);
  if (out.status != 0 || row.top_k == 1) {
    if (chunk != 0 || threadIdx.x != 0) return;
  } else {
    Row r{logits + std::int64_t{m} * V, V, {top.logit, row.scale}};
    Cut cut = is_cut(row) ? space.cuts[m] : Cut{kBuckets, ~u64{0}, 0};
    Leader leader = block_leader(race_chunk(r, cut, row.key, top.id, chunk, chunks));
    int4* leaders = space.leaders + m * kMaxChunks;
    if (threadIdx.x == 0) leaders[chunk] = pack(leader);
    if (!last_block(tickets + m, static_cast<unsigned>(chunks)) || threadIdx.x >= 32) return;
    bool one = static_cast<int>(threadIdx.x) < chunks;
    out.token = warp_leader(one ? unpack(__ldcg(leaders + threadIdx.x)) : Leader{}).id;
    if (threadIdx.x != 0) return;
  }
  drawn[m] = out;
  last[row.slot] = out.token;
}

}  // namespace

void draw(const Context& c, DrawnRow* drawn, std::int32_t* last, const DrawRow* rows,
          const float* logits, std::int64_t M, std::int64_t V, bool greedy) {
  if (V > static_cast<std::int64_t>(kMaxVocab) || M * kRowBytes > c.workspace_bytes)
    fail(c, cudaErrorInvalidValue, "drawing from more logits than there is room for");
  Space space;
  space.best = reinterpret_cast<Best*>(c.workspace);
  space.leaders = reinterpret_cast<int4*>(space.best + M * kMaxChunks);
  space.cuts = reinterpret_cast<Cut*>(space.leaders + M * kMaxChunks);
  space.tallies = reinterpret_cast<Tally*>(space.cuts + M);
  int chunks = M <= 16 ? kMaxChunks : 8;
  dim3 grid(static_cast<unsigned>(chunks), static_cast<unsigned>(M));
  launch(c, scan_kernel, grid, kScanThreads, 0, drawn, last, c.tickets, space.best,
         greedy ? nullptr : space.tallies, rows, logits, V);
  if (greedy) return;
  cut_rows(c, space, rows, logits, M, static_cast<int>(V), chunks);
  launch(c, race_kernel, grid, kRaceThreads, 0, drawn, last, c.tickets, space, rows, logits, V);
}

}  // namespace vitrine::cuda
