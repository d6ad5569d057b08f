// Two products with the same row, of different formats, as one launch: groups with minimums beside
// groups of 16, as mixed models have them for q, k and v.
#include "kernels/cuda/matmul_few.cuh"
#include "units.gen.h"

namespace vitrine::cuda {
namespace {

template <typename F, typename G>
inline constexpr bool kPairs = F::kMin&& G::kLevels&& G::kGroup == 16;

// False, with nothing done, where these are not the types or the rows do not fit.
template <typename F, typename G>
bool launch_if(Context& c, const Job& a, DType type, const Job& b, DType type2) {
  if constexpr (kPairs<F, G>) {
    if (type != F::Format::kInfo.dtype || type2 != G::Format::kInfo.dtype) return false;
    if (!few_fits<F>(c, a) || !few_fits<G>(c, b)) return false;
    launch_pair_kernel<F, G>(c, a, b);
    return true;
  }
  return false;
}

template <typename F, typename... G>
bool launch_with(FormatList<G...>, Context& c, const Job& a, DType type, const Job& b,
                 DType type2) {
  return (launch_if<F, G>(c, a, type, b, type2) || ...);
}

template <typename... F>
bool launch_any(FormatList<F...> all, Context& c, const Job& a, DType type, const Job& b,
                DType type2) {
  return (launch_with<F>(all, c, a, type, b, type2) || ...);
}

}  // namespace

bool launch_pair(Context& c, const Job& a, DType type, const Job& b, DType type2) {
  return c.sms >= 2 && launch_any(AllUnits{}, c, a, type, b, type2);
}

}  // namespace vitrine::cuda
