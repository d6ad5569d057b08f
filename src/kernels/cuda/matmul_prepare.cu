// Rows to operands of the tensor instruction (matmul_tile.cuh) or to plain 16-bit rows
// (matmul_many.cuh), one block a row.
#include "kernels/cuda/matmul_many.cuh"
#include "kernels/cuda/matmul_tile.cuh"

namespace vitrine::cuda {
namespace {

constexpr int kThreads = 256;

// The factor of the row's elements: the norm's, times the power of two for f16, whose inverse it
// stores.
template <bool kHalf>
__device__ float factor_of(const Job& job, const float* row, float* inverse) {
  __shared__ float scratch[33];
  float square = 0, amax = 0;
  for (int k = threadIdx.x; k < job.K; k += kThreads) {
    float x = __ldcg(row + k);
    square = fmaf(x, x, square);
    amax = fmaxf(amax, fabsf(job.norm ? x * __ldg(job.norm + k) : x));
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

template <bool kHalf>
__global__ void __launch_bounds__(kThreads) operands_kernel(const __grid_constant__ Job job, int cols, std::uint32_t* out, float* sums,
                                float* inverse) {
  pdl_trigger();
  pdl_wait();
  int token = blockIdx.x, tokens = gridDim.x;
  bool inside = token < job.T;
  const float* row = job.x + std::int64_t{token} * job.K;
  float factor = inside ? factor_of<kHalf>(job, row, inverse + token) : 0;
  // A thread has two neighbouring columns, 16 lanes a group of 32.
  for (int k = threadIdx.x * 2; k < cols; k += kThreads * 2) {
    float v[2] = {0, 0};
    for (int h = 0; h < 2; ++h)
      if (inside && k + h < job.K)
        v[h] = __ldcg(row + k + h) * factor * (job.norm ? __ldg(job.norm + k + h) : 1);
    std::uint32_t packed = pack2<kHalf>(v[0], v[1]);
    std::int64_t tile = std::int64_t{k / 16} * (tokens / 8) + token / 8;
    out[(tile * 32 + token % 8 * 4 + k % 8 / 2) * 2 + k % 16 / 8] = packed;
    if (sums) {
      float2 kept = unpack2<kHalf>(packed);
      float sum = kept.x + kept.y;
      for (int o = 1; o < 16; o *= 2) sum += __shfl_xor_sync(0xffffffff, sum, o);
      if (threadIdx.x % 16 == 0) sums[std::int64_t{k / 32} * tokens + token] = sum;
    }
  }
}

template <bool kHalf>
__global__ void __launch_bounds__(kThreads)
    rows_kernel(const __grid_constant__ Job job, int cols, std::uint32_t* out, float* inverse) {
  pdl_trigger();
  pdl_wait();
  std::int64_t token = blockIdx.x;
  const float* row = job.x + token * job.K;
  float factor = factor_of<kHalf>(job, row, inverse + token);
  for (int k = threadIdx.x * 2; k < cols; k += kThreads * 2) {
    float v[2] = {0, 0};
    for (int h = 0; h < 2; ++h)
      if (k + h < job.K) v[h] = __ldcg(row + k + h) * factor * (job.norm ? __ldg(job.norm + k + h) : 1);
    out[(token * cols + k) / 2] = pack2<kHalf>(v[0], v[1]);
  }
}

// grid.y: rows
__global__ void finish_kernel(const __grid_constant__ Job job, const __grid_constant__ Segment s, const float* sums, int ld, int first, int n,
                              const float* inverse) {
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

void prepare_rows(Context& c, const Job& job, bool half, int cols, std::uint32_t* x, float* inverse) {
  launch(c, half ? rows_kernel<true> : rows_kernel<false>, dim3(job.T), kThreads, 0, job, cols, x, inverse);
}

void finish_rows(Context& c, const Job& job, const Segment& s, const float* sums, int ld, int first, int n,
                 const float* inverse) {
  launch(c, finish_kernel, dim3(blocks_for(c, n, kThreads), blocks_for(c, job.T, 1)), kThreads, 0, job, s, sums, ld, first, n, inverse);
}

void prepare_operands(Context& c, const Job& job, bool half, int tokens, int cols, uint2* x, float* sums,
                      float* inverse) {
  auto* to = reinterpret_cast<std::uint32_t*>(x);
  launch(c, half ? operands_kernel<true> : operands_kernel<false>, dim3(tokens), kThreads, 0, job, cols, to, sums,
         inverse);
}

}  // namespace vitrine::cuda
