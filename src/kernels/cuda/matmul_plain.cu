#include "kernels/cuda/matmul_few.cuh"
#include "kernels/cuda/matmul_many.cuh"
#include "kernels/cuda/matmul_tile.cuh"

namespace vitrine::cuda {

template bool few_fits<WeightF32>(const Context& c, const Job& job);
template void launch_few<WeightF32>(Context& c, Job job);
template void launch_tile<WeightF32>(Context& c, Job job, std::byte* workspace, std::int64_t bytes);
template bool launch_many<WeightF32>(Context& c, Job job, std::byte* workspace, std::int64_t bytes);
template bool few_fits<WeightF16>(const Context& c, const Job& job);
template void launch_few<WeightF16>(Context& c, Job job);
template void launch_tile<WeightF16>(Context& c, Job job, std::byte* workspace, std::int64_t bytes);
template bool launch_many<WeightF16>(Context& c, Job job, std::byte* workspace, std::int64_t bytes);
template bool few_fits<WeightBF16>(const Context& c, const Job& job);
template void launch_few<WeightBF16>(Context& c, Job job);
template void launch_tile<WeightBF16>(Context& c, Job job, std::byte* workspace,
                                      std::int64_t bytes);
template bool launch_many<WeightBF16>(Context& c, Job job, std::byte* workspace,
                                      std::int64_t bytes);

}  // namespace vitrine::cuda
