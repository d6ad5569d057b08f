#include "kernels/cuda/device_memory.h"

#include <cuda_runtime_api.h>

#include <cstring>

namespace vitrine::cuda {

Result<Buffer> allocate_device(std::int64_t bytes) {
  auto size = static_cast<std::size_t>(bytes > 0 ? bytes : 1);
  void* data = nullptr;
  cudaError_t error = cudaMalloc(&data, size);
  if (error == cudaSuccess) error = cudaMemset(data, 0, size);
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  if (error == cudaSuccess) return Buffer(data, bytes, [](void* p) { cudaFree(p); });
  cudaGetLastError();
  cudaFree(data);
  std::size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  return make_error(ErrorCode::kUnavailable,
                    "cannot allocate {} MiB of device memory, {} of {} MiB are free: {}",
                    bytes >> 20, free >> 20, total >> 20, cudaGetErrorString(error));
}

Result<Buffer> allocate_pinned(std::int64_t bytes) {
  auto size = static_cast<std::size_t>(bytes > 0 ? bytes : 1);
  void* data = nullptr;
  cudaError_t error = cudaMallocHost(&data, size);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return make_error(ErrorCode::kUnavailable, "cannot pin {} MiB of host memory: {}", bytes >> 20,
                      cudaGetErrorString(error));
  }
  std::memset(data, 0, size);
  return Buffer(data, bytes, [](void* p) { cudaFreeHost(p); });
}

}  // namespace vitrine::cuda
