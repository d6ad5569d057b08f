// The simplest product: weights as f32, a warp an output, rows one after another.
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matmul.h"
#include "quant/format.h"

namespace vitrine::cuda {
namespace {

__global__ void matmul_kernel(float* out, const float* x, const float* w, const float* bias,
                              std::int64_t T, std::int64_t N, std::int64_t K) {
  pdl_wait();
  pdl_trigger();
  std::int64_t n = std::int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32;
  if (n >= N) return;
  int lane = threadIdx.x % 32;
  for (std::int64_t t = blockIdx.y; t < T; t += gridDim.y) {
    float sum = 0;
    for (std::int64_t k = lane; k < K; k += 32) sum += x[t * K + k] * w[n * K + k];
    sum = warp_sum(sum);
    if (lane == 0) out[t * N + n] = sum + (bias != nullptr ? bias[n] : 0);
  }
}

}  // namespace

std::int64_t packed_bytes(DType, std::int64_t rows, std::int64_t cols) { return rows * cols * 4; }

Result<std::unique_ptr<Weight>> pack_weight(const Context& c, const MatrixSource& m) {
  const Format* format = find_format(m.dtype);
  std::int64_t bytes = packed_bytes(m.dtype, m.rows(), m.cols);
  VT_TRY(Buffer memory, allocate_device(bytes));
  std::int64_t chunk = std::max<std::int64_t>(1, (8 << 20) / (m.cols * 4));
  std::vector<float> values(static_cast<std::size_t>(chunk * m.cols));
  for (std::int64_t first = 0; first < m.rows(); first += chunk) {
    std::int64_t n = std::min(chunk, m.rows() - first);
    for (std::int64_t r = 0; r < n; ++r)
      format->decode(m.row_data[first + r], m.cols / format->info.block,
                     values.data() + r * m.cols);
    check(c,
          cudaMemcpy(static_cast<float*>(memory.data()) + first * m.cols, values.data(),
                     static_cast<std::size_t>(n * m.cols) * 4, cudaMemcpyHostToDevice),
          "upload");
  }
  return std::unique_ptr<Weight>(std::make_unique<CudaWeight>(m, bytes, std::move(memory)));
}

void matmul(Context& c, float* out, const float* x, std::int64_t T, const CudaWeight& w,
            const float* bias) {
  launch(c, matmul_kernel, {blocks_for(c, w.rows(), 4), static_cast<unsigned>(std::min<std::int64_t>(T, 1024))}, 128, 0, out, x,
         reinterpret_cast<const float*>(w.data()), bias, T, w.rows(), w.cols());
}

}  // namespace vitrine::cuda
