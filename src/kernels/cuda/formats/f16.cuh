// f16 on cuda: operands as they are.
#pragma once

#include "kernels/cuda/formats/detail/halves.cuh"
#include "quant/f16.h"

namespace vitrine::cuda {

struct WeightF16 : HalfUnits {
  using Format = F16;
  static constexpr bool kHalf = true;
};

}  // namespace vitrine::cuda
