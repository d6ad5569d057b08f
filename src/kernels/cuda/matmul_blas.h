// cublasLt, loaded when first asked for: the program starts on machines that do not have it.
#pragma once

#include "kernels/cuda/context.h"

namespace vitrine::cuda {

// out (T,N; rows ld_out apart) f32 = x (T,K) * w (N,K)^T + beta * add, x and w f16 or bf16; `add`
// has the shape of out. False, with nothing done, where there is no cublasLt or it has no kernel.
struct BlasProduct {
  float* out;
  const float* add;
  const void *x, *w;
  std::int64_t T, N, K, ld_out;
  bool half;  // f16, not bf16
  void* workspace;
  std::int64_t workspace_bytes;
};
bool blas_product(Context& c, const BlasProduct& p);
bool have_blas();

}  // namespace vitrine::cuda
