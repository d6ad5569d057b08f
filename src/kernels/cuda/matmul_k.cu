#include "kernels/cuda/matmul_few.cuh"
#include "kernels/cuda/matmul_many.cuh"
#include "kernels/cuda/matmul_tile.cuh"

namespace vitrine::cuda {

template bool few_fits<WeightQ4_K>(const Context& c, const Job& job);
template void launch_few<WeightQ4_K>(Context& c, Job job);
template void launch_tile<WeightQ4_K>(Context& c, Job job, std::byte* workspace,
                                      std::int64_t bytes);
template bool launch_many<WeightQ4_K>(Context& c, Job job, std::byte* workspace,
                                      std::int64_t bytes);
template bool few_fits<WeightQ5_K>(const Context& c, const Job& job);
template void launch_few<WeightQ5_K>(Context& c, Job job);
template void launch_tile<WeightQ5_K>(Context& c, Job job, std::byte* workspace,
                                      std::int64_t bytes);
template bool launch_many<WeightQ5_K>(Context& c, Job job, std::byte* workspace,
                                      std::int64_t bytes);
template bool few_fits<WeightQ6_K>(const Context& c, const Job& job);
template void launch_few<WeightQ6_K>(Context& c, Job job);
template void launch_tile<WeightQ6_K>(Context& c, Job job, std::byte* workspace,
                                      std::int64_t bytes);
template bool launch_many<WeightQ6_K>(Context& c, Job job, std::byte* workspace,
                                      std::int64_t bytes);

}  // namespace vitrine::cuda
