#include "kernels/cuda/matmul_few.cuh"
#include "kernels/cuda/matmul_many.cuh"
#include "kernels/cuda/matmul_tile.cuh"

namespace vitrine::cuda {

template bool few_fits<WeightQ8_0>(const Context& c, const Job& job);
template void launch_few<WeightQ8_0>(Context& c, Job job);
template void launch_tile<WeightQ8_0>(Context& c, Job job, std::byte* workspace,
                                      std::int64_t bytes);
template bool launch_many<WeightQ8_0>(Context& c, Job job, std::byte* workspace,
                                      std::int64_t bytes);
template bool few_fits<WeightQ4_0>(const Context& c, const Job& job);
template void launch_few<WeightQ4_0>(Context& c, Job job);
template void launch_tile<WeightQ4_0>(Context& c, Job job, std::byte* workspace,
                                      std::int64_t bytes);
template bool launch_many<WeightQ4_0>(Context& c, Job job, std::byte* workspace,
                                      std::int64_t bytes);

}  // namespace vitrine::cuda
