// Products of activations (T,K) with weights (N,K).
#pragma once

#include <span>

#include "kernels/cuda/weight.h"

namespace vitrine::cuda {

void matmul(Context& c, float* out, const float* x, std::int64_t T, const CudaWeight& w,
            const float* bias);

}  // namespace vitrine::cuda
