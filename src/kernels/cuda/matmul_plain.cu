#include "kernels/cuda/matmul_few.cuh"
#include "kernels/cuda/matmul_tile.cuh"

namespace vitrine::cuda {

template void launch_few<WeightF32>(Context& c, Job job);
template void launch_tile<WeightF32>(Context& c, Job job, std::byte* workspace, std::int64_t bytes);
template void launch_few<WeightF16>(Context& c, Job job);
template void launch_tile<WeightF16>(Context& c, Job job, std::byte* workspace, std::int64_t bytes);
template void launch_few<WeightBF16>(Context& c, Job job);
template void launch_tile<WeightBF16>(Context& c, Job job, std::byte* workspace, std::int64_t bytes);

}  // namespace vitrine::cuda
