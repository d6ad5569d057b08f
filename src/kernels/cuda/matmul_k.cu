#include "kernels/cuda/matmul_few.cuh"
#include "kernels/cuda/matmul_tile.cuh"

namespace vitrine::cuda {

template void launch_few<WeightQ4_K>(Context& c, Job job);
template void launch_tile<WeightQ4_K>(Context& c, Job job, std::byte* workspace, std::int64_t bytes);
template void launch_few<WeightQ5_K>(Context& c, Job job);
template void launch_tile<WeightQ5_K>(Context& c, Job job, std::byte* workspace, std::int64_t bytes);
template void launch_few<WeightQ6_K>(Context& c, Job job);
template void launch_tile<WeightQ6_K>(Context& c, Job job, std::byte* workspace, std::int64_t bytes);

}  // namespace vitrine::cuda
