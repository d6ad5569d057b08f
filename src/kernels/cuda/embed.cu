// Rows of an embedding, decoded by the decoders of quant/: one thread per block of weights.
// Compiled without FMA contraction, so that the results equal the host's.
#include "formats.gen.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"

namespace vitrine::cuda {
namespace {

template <typename F>
__global__ void embed_kernel(float* out, const std::byte* rows, const std::int32_t* ids,
                             const std::int32_t* last, std::int64_t blocks, float scale) {
  pdl_wait();
  pdl_trigger();
  std::int64_t t = blockIdx.x, b = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (b >= blocks) return;
  std::int64_t id = ids[t];
  if (id < 0) id = last[-1 - id];
  typename F::Block block;
  const std::byte* from = rows + (id * blocks + b) * sizeof(block);
  // Blocks may be aligned to two bytes only.
  if constexpr (sizeof(block) % 2 == 0) {
    auto* to = reinterpret_cast<std::uint16_t*>(&block);
    for (int i = 0; i < static_cast<int>(sizeof(block) / 2); ++i)
      to[i] = reinterpret_cast<const std::uint16_t*>(from)[i];
  } else {
    auto* to = reinterpret_cast<std::byte*>(&block);
    for (int i = 0; i < static_cast<int>(sizeof(block)); ++i) to[i] = from[i];
  }
  float* to = out + (t * blocks + b) * F::kInfo.block;
  F::decode(block, to);
  for (int i = 0; i < F::kInfo.block; ++i) to[i] *= scale;
}

template <typename F>
bool embed_if(const Context& c, float* out, const std::byte* rows, DType dtype, std::int64_t cols,
              const std::int32_t* ids, std::int64_t T, float scale) {
  if (dtype != F::kInfo.dtype) return false;
  std::int64_t blocks = cols / F::kInfo.block;
  constexpr int kThreads = 128;
  launch(c, embed_kernel<F>, {blocks_for(c, T, 1), blocks_for(c, blocks, kThreads)}, kThreads, 0,
         out, rows, ids, c.last, blocks, scale);
  return true;
}

template <typename... F>
bool embed_any(FormatList<F...>, const Context& c, float* out, const std::byte* rows, DType dtype,
               std::int64_t cols, const std::int32_t* ids, std::int64_t T, float scale) {
  return (embed_if<F>(c, out, rows, dtype, cols, ids, T, scale) || ...);
}

}  // namespace

void embed(const Context& c, float* out, const std::byte* rows, DType dtype, std::int64_t cols,
           const std::int32_t* ids, std::int64_t T, float scale) {
  if (!embed_any(AllFormats{}, c, out, rows, dtype, cols, ids, T, scale))
    fail(c, cudaErrorInvalidValue, "a table of an unknown format");
}

}  // namespace vitrine::cuda
