// Elementwise ops: one thread per element.
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"

namespace vitrine::cuda {
namespace {

constexpr int kThreads = 256;

template <typename F>
__global__ void for_each_kernel(std::int64_t n, F f) {
  pdl_wait();
  pdl_trigger();
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) f(i);
}

template <typename F>
void for_each(const Context& c, std::int64_t n, F f) {
  if (n > 0) launch(c, for_each_kernel<F>, blocks_for(c, n, kThreads), kThreads, 0, n, f);
}

}  // namespace

void add(const Context& c, float* out, const float* a, const float* b, std::int64_t n) {
  for_each(c, n, [=] __device__(std::int64_t i) { out[i] = a[i] + b[i]; });
}

void activate(const Context& c, float* x, std::int64_t n, Activation activation) {
  for_each(c, n, [=] __device__(std::int64_t i) { x[i] = apply_activation(x[i], activation); });
}

void glu(const Context& c, float* out, const float* gate, const float* up, std::int64_t n,
         Activation activation) {
  for_each(c, n, [=] __device__(std::int64_t i) {
    out[i] = apply_activation(gate[i], activation) * up[i];
  });
}

void softcap(const Context& c, float* x, std::int64_t n, float cap) {
  for_each(c, n, [=] __device__(std::int64_t i) { x[i] = cap * tanhf(x[i] / cap); });
}

void gather_rows(const Context& c, float* out, const float* x, const std::int32_t* rows,
                 std::int64_t M, std::int64_t E) {
  for_each(c, M * E, [=] __device__(std::int64_t i) { out[i] = x[rows[i / E] * E + i % E]; });
}

}  // namespace vitrine::cuda
