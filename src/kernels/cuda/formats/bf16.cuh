// bf16 on cuda: operands as they are.
#pragma once

#include "kernels/cuda/formats/detail/halves.cuh"
#include "quant/bf16.h"

namespace vitrine::cuda {

struct WeightBF16 : HalfUnits {
  using Format = BF16;
  static constexpr bool kHalf = false;
};

}  // namespace vitrine::cuda
