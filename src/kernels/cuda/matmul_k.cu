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

bool launch_k_pair(Context& c, const Job& a, DType type, const Job& b, DType type2) {
  constexpr auto kQ4 = static_cast<DType>(12), kQ5 = static_cast<DType>(13),
                 kQ6 = static_cast<DType>(14);
  if (c.sms < 2 || type2 != kQ6 || !few_fits<WeightQ6_K>(c, b)) return false;
  if (type == kQ4 && few_fits<WeightQ4_K>(c, a))
    launch_pair<WeightQ4_K, WeightQ6_K>(c, a, b);
  else if (type == kQ5 && few_fits<WeightQ5_K>(c, a))
    launch_pair<WeightQ5_K, WeightQ6_K>(c, a, b);
  else
    return false;
  return true;
}

}  // namespace vitrine::cuda
