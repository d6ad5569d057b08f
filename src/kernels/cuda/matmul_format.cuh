// All kernels of one format, for the table of formats.
#pragma once

#include "kernels/cuda/matmul_few.cuh"
#include "kernels/cuda/matmul_many.cuh"
#include "kernels/cuda/matmul_tile.cuh"

namespace vitrine::cuda {

// One block a unit; grid.y are the tiles.
template <typename F>
__global__ void pack_kernel(std::uint32_t* out, Rows m) {
  std::int64_t unit = std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x;
  for (int w = threadIdx.x; w < F::kWords; w += blockDim.x)
    out[unit * F::kWords + w] = F::pack_word(m, std::int64_t{blockIdx.y} * kTileRows,
                                             std::int64_t{blockIdx.x} * F::kCols, w);
}

template <typename F>
void launch_pack(const Context& c, std::uint32_t* out, const Rows& rows) {
  dim3 grid(static_cast<unsigned>((rows.cols + F::kCols - 1) / F::kCols),
            static_cast<unsigned>((rows.count + kTileRows - 1) / kTileRows));
  pack_kernel<F><<<grid, 128, 0, c.stream>>>(out, rows);
}

template <typename F>
constexpr CudaFormat describe_format() {
  return {F::Format::kInfo.dtype, F::kCols,       F::kWords * 4, launch_pack<F>, few_fits<F>,
          launch_few<F>,          launch_tile<F>, launch_many<F>};
}

}  // namespace vitrine::cuda
