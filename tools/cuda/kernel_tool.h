// What the checker and the benchmark of the CUDA kernels share. Errors end the program.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "kernels/cuda/attention_tensor.h"
#include "kernels/cuda/matmul.h"

namespace vitrine::cuda {

Context make_context();
void* allocate(std::size_t bytes);

// Device memory of n elements; freed with the object.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t n)
      : data_(static_cast<T*>(allocate(n * sizeof(T))), cudaFree), n_(n) {}
  explicit DeviceArray(const std::vector<T>& from) : DeviceArray(from.size()) {
    cudaMemcpy(get(), from.data(), n_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  T* get() const { return data_.get(); }
  // Done when it returns: the kernels' stream waits for nothing that is queued elsewhere.
  void poison() {
    cudaMemset(get(), 0xff, n_ * sizeof(T));
    cudaDeviceSynchronize();
  }
  std::vector<T> read() const {
    std::vector<T> out(n_);
    cudaMemcpy(out.data(), get(), n_ * sizeof(T), cudaMemcpyDeviceToHost);
    return out;
  }

 private:
  std::unique_ptr<T, cudaError_t (*)(void*)> data_;
  std::size_t n_;
};

inline std::vector<float> normal(std::size_t n, unsigned seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution(0, scale);
  std::vector<float> out(n);
  for (float& x : out) x = distribution(random);
  return out;
}

void synchronize(Context& c);
// Random bits that are finite numbers of 16 bits each.
void fill_random(void* data, std::size_t bytes);
// Of random bits, for speed alone.
std::unique_ptr<CudaWeight> random_weight(DType dtype, std::int64_t rows, std::int64_t cols);
// Microseconds of one replay of the calls as a graph: the median, warm.
double graph_time(Context& c, const std::function<void()>& calls);

}  // namespace vitrine::cuda
