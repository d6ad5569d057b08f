#include "kernels/cuda/matmul_few.cuh"
#include "kernels/cuda/matmul_tile.cuh"

namespace vitrine::cuda {

template void launch_few<WeightQ8_0>(Context& c, Job job);
template void launch_tile<WeightQ8_0>(Context& c, Job job, std::byte* workspace, std::int64_t bytes);
template void launch_few<WeightQ4_0>(Context& c, Job job);
template void launch_tile<WeightQ4_0>(Context& c, Job job, std::byte* workspace, std::int64_t bytes);

}  // namespace vitrine::cuda
