// Rows to operands of the tensor instruction (matmul_tile.cuh) or to plain 16-bit rows
// (matmul_many.cuh), one block a row.
#include "kernels/cuda/matmul_many.cuh"
#include "kernels/cuda/matmul_tile.cuh"

namespace vitrine::cuda {
namespace {

constexpr int kThreads = 512, kFinishThreads = 256;

// Four columns from k, zero past K. `aligned`: rows begin at 16 bytes.
__device__ float4 load4(const float* row, int k, int K, bool aligned) {
  if (aligned) return k < K ? __ldcg(reinterpret_cast<const float4*>(row + k)) : float4{};
  return {k < K ? __ldcg(row + k) : 0, k + 1 < K ? __ldcg(row + k + 1) : 0,
          k + 2 < K ? __ldcg(row + k + 2) : 0, k + 3 < K ? __ldcg(row + k + 3) : 0};
}

__device__ float4 times(float4 x, float4 y) { return {x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w}; }

// The factor of the row's elements: the norm's, times the power of two for f16, whose inverse it
// stores.
template <bool kHalf>
__device__ float factor_of(const Job& job, const float* row, bool aligned, float* inverse) {
  __shared__ float scratch[33];
  float square = 0, amax = 0;
#pragma unroll 4
  for (int k = threadIdx.x * 4; k < job.K; k += kThreads * 4) {
    float4 x = load4(row, k, job.K, aligned);
    square += (x.x * x.x + x.y * x.y) + (x.z * x.z + x.w * x.w);
    if (job.norm) x = times(x, load4(job.norm, k, job.K, aligned));
    amax = fmaxf(amax, fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w))));
  }
  float factor = 1;
  if (job.norm) factor = rsqrtf(block_sum(square, scratch) / static_cast<float>(job.K) + job.eps);
  if constexpr (kHalf) {
    amax = warp_max(amax);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = amax;
    __syncthreads();
    amax = warp_max(threadIdx.x % 32 < kThreads / 32 ? scratch[threadIdx.x % 32] : 0);
    float2 power = row_scale(amax * factor);
    if (threadIdx.x == 0) *inverse = power.y;
    factor *= power.x;
  }
  return factor;
}

// Four columns of the row, normed and scaled.
__device__ float4 element4(const Job& job, const float* row, int k, bool aligned, float factor) {
  float4 x = times(load4(row, k, job.K, aligned), {factor, factor, factor, factor});
  return job.norm ? times(x, load4(job.norm, k, job.K, aligned)) : x;
}

// A thread's columns of a row, as many as it keeps in registers; of wider rows it loads all again.
constexpr int kKept = 4, kTurn = kThreads * 4 * kKept;

// In so few registers that its blocks wait beside those of the product before it, and the next
// product's can begin when they end.
template <bool kHalf>
__global__ void __launch_bounds__(kThreads, 2)
    operands_kernel(const __grid_constant__ Job job, int cols, uint2* out, float* sums,
                    float* factors) {
  __shared__ float scratch[33];
  pdl_trigger();
  int token = blockIdx.x, tokens = gridDim.x;
  bool aligned = job.K % 4 == 0;
  int end = token < job.T ? job.K : 0;
  const float* row = job.x + std::int64_t{token} * job.K;
  float4 kept[kKept], weight[kKept];
  auto each = [&](int first, auto f) {
#pragma unroll
    for (int j = 0; j < kKept; ++j)
      if (int k = first + (j * kThreads + static_cast<int>(threadIdx.x)) * 4; k < cols) f(j, k);
  };
  auto load_norm = [&](int first) {
    if (job.norm)
      each(first, [&](int j, int k) { weight[j] = load4(job.norm, k, job.K, aligned); });
  };
  auto load_row = [&](int first) {
    each(first, [&](int j, int k) { kept[j] = load4(row, k, end, aligned); });
  };
  // Normed by `scale` and the weights, then times `power`.
  auto value = [&](int j, float scale, float power) {
    float4 x = times(kept[j], {scale, scale, scale, scale});
    if (job.norm) x = times(x, weight[j]);
    return kHalf ? times(x, {power, power, power, power}) : x;
  };
  float scale = 1;
  float2 power{1, 1};
  auto pass = [&](auto f) {
    for (int first = 0; first < cols; first += kTurn) {
      if (cols > kTurn) load_norm(first), load_row(first);
      each(first, f);
    }
  };
  load_norm(0);
  pdl_wait();
  if (cols <= kTurn) load_row(0);
  if (job.norm) {
    float square = 0;
    pass([&](int j, int) {
      const float4& x = kept[j];
      square += (x.x * x.x + x.y * x.y) + (x.z * x.z + x.w * x.w);
    });
    scale = rsqrtf(block_sum(square, scratch) / static_cast<float>(job.K) + job.eps);
  }
  if constexpr (kHalf) {
    float amax = 0;
    pass([&](int j, int) {
      float4 x = value(j, scale, 1);
      amax = fmaxf(amax, fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w))));
    });
    amax = warp_max(amax);
    __syncthreads();  // the sums have been read
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = amax;
    __syncthreads();
    power = row_scale(warp_max(threadIdx.x % 32 < kThreads / 32 ? scratch[threadIdx.x % 32] : 0));
  }
  // A thread has four neighbouring columns, 8 lanes a group of 32. Columns are a multiple of 64:
  // with sums, of 256, so that no lane of a warp is missing.
  pass([&](int j, int k) {
    float4 x = value(j, scale, power.x);
    std::uint32_t packed[2] = {pack2<kHalf>(x.x, x.y), pack2<kHalf>(x.z, x.w)};
    std::int64_t tile = std::int64_t{k / 8} * (tokens / 8) + token / 8;
    out[tile * 16 + token % 8 * 2 + k % 8 / 4] = {packed[0], packed[1]};
    if (!sums) return;
    float2 a = unpack2<kHalf>(packed[0]), b = unpack2<kHalf>(packed[1]);
    float sum = (a.x + a.y) + (b.x + b.y);
    for (int o = 1; o < 8; o *= 2) sum += __shfl_xor_sync(0xffffffff, sum, o);
    if (threadIdx.x % 8 == 0) sums[std::int64_t{k / 32} * tokens + token] = sum;
  });
  if (kHalf && threadIdx.x == 0) factors[token] = power.y;
}

template <bool kHalf>
__global__ void __launch_bounds__(kThreads)
    rows_kernel(const __grid_constant__ Job job, int cols, std::uint32_t* out, float* inverse) {
  pdl_trigger();
  pdl_wait();
  std::int64_t token = blockIdx.x;
  const float* row = job.x + token * job.K;
  bool aligned = job.K % 4 == 0;
  float factor = factor_of<kHalf>(job, row, aligned, inverse + token);
#pragma unroll 4
  for (int k = threadIdx.x * 4; k < cols; k += kThreads * 4) {
    float4 x = element4(job, row, k, aligned, factor);
    *reinterpret_cast<uint2*>(out + (token * cols + k) / 2) = {pack2<kHalf>(x.x, x.y),
                                                               pack2<kHalf>(x.z, x.w)};
  }
}

// grid.y: rows
__global__ void finish_kernel(const __grid_constant__ Job job, const __grid_constant__ Segment s,
                              const float* sums, int ld, int first, int n, const float* inverse) {
  pdl_trigger();
  pdl_wait();
  int i = blockIdx.x * blockDim.x + threadIdx.x, token = blockIdx.y;
  if (i >= n) return;
  float scale = inverse ? __ldcg(inverse + token) : 1;
  const float* from = sums + std::int64_t{token} * ld + i;
  float sum = __ldcg(from) * scale;
  if (job.glu) sum = apply_activation(sum, job.activation) * __ldcg(from + ld / 2) * scale;
  write_output(job, s, token, first + i, sum);
}

}  // namespace

void prepare_rows(Context& c, const Job& job, bool half, int cols, std::uint32_t* x,
                  float* inverse) {
  launch(c, half ? rows_kernel<true> : rows_kernel<false>, dim3(job.T), kThreads, 0, job, cols, x,
         inverse);
}

void finish_rows(Context& c, const Job& job, const Segment& s, const float* sums, int ld, int first,
                 int n, const float* inverse) {
  launch(c, finish_kernel, dim3(blocks_for(c, n, kFinishThreads), blocks_for(c, job.T, 1)),
         kFinishThreads, 0, job, s, sums, ld, first, n, inverse);
}

void prepare_operands(Context& c, const Job& job, bool half, int tokens, int cols, uint4* x,
                      float* sums, float* factors) {
  auto* to = reinterpret_cast<uint2*>(x);
  launch(c, half ? operands_kernel<true> : operands_kernel<false>, dim3(tokens), kThreads, 0, job,
         cols, to, sums, factors);
}

}  // namespace vitrine::cuda
