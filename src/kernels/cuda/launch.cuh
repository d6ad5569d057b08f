// Launching kernels, and the few device functions that most of them share.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/context.h"

namespace vitrine::cuda {

// `cluster`: blocks along y that run together and see each other's shared memory; 1: each alone.
template <typename... Params, typename... Args>
void launch_cluster(const Context& c, void (*kernel)(Params...), int cluster, dim3 grid, dim3 block,
                    std::size_t shared, Args... args) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = c.stream;
  cudaLaunchAttribute attributes[2] = {};
  config.attrs = attributes;
  if (c.pdl) {
    cudaLaunchAttribute& a = attributes[config.numAttrs++];
    a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    a.val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster > 1) {
    cudaLaunchAttribute& a = attributes[config.numAttrs++];
    a.id = cudaLaunchAttributeClusterDimension;
    a.val.clusterDim.x = a.val.clusterDim.z = 1, a.val.clusterDim.y = cluster;
  }
  check(c, cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...), "launch");
}

template <typename... Params, typename... Args>
void launch(const Context& c, void (*kernel)(Params...), dim3 grid, dim3 block, std::size_t shared,
            Args... args) {
  launch_cluster(c, kernel, 1, grid, block, shared, args...);
}

// Lets the kernel have so much shared memory; `allowed` is what it may have already.
template <typename Kernel>
void allow_shared(const Context& c, Kernel* kernel, int bytes, int& allowed) {
  if (bytes <= allowed) return;
  check(c, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "shared memory");
  allowed = bytes;
}

// Waits until all memory of the kernels before this one is visible. First statement of a kernel but
// for loads of what was there before the step (Context::pdl).
__device__ inline void pdl_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// The next kernel may take whatever room the multiprocessors have from now on.
__device__ inline void pdl_trigger() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

__device__ inline float warp_sum(float x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffff, x, offset);
  return x;
}

__device__ inline float warp_max(float x) {
  for (int offset = 16; offset > 0; offset /= 2)
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, offset));
  return x;
}

// Over the whole block, in an order that depends on its size alone; `scratch` has 33 floats. All
// threads get the sum.
__device__ inline float block_sum(float x, float* scratch) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
  x = warp_sum(x);
  if (warps == 1) return x;
  __syncthreads();
  if (lane == 0) scratch[warp] = x;
  __syncthreads();
  return warp_sum(lane < warps ? scratch[lane] : 0.0f);
}

// True in all threads of the block that is the last of `blocks` to come here with this ticket; what
// the others wrote before is then visible to it.
__device__ inline bool last_block(unsigned* ticket, unsigned blocks) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(ticket, 1) == blocks - 1;
    if (last) *ticket = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

}  // namespace vitrine::cuda
