// Products of activations (T,K) with weights (N,K), f32 in and out.
//
//   rows                 kernel            activations             weights
//   one, of levels       matmul_one.cuh    15 bits and a step      exact
//   up to 8, or 4        matmul_few.cuh    f16; bf16 in two parts  exact
//   up to 128            matmul_tile.cuh   f16 or bf16             exact
//   more                 cublasLt          f16 or bf16             decoded to f16 or bf16
//
// Levels are the quantised types; their one row shares matmul_few.cuh. f16 and bf16 weights go by
// wgmma in matmul_tile.cuh on Hopper (matmul_wide.cuh). "few" are up to 8 rows for f16 activations
// and up to 4 for bf16, of no more than 16,384 columns together. Without cublasLt, and for f32
// weights, matmul_tile.cuh takes any number of rows. bf16 and f32 weights go with bf16 activations,
// all others with f16, scaled by a power of two per row so that no row overflows.
// Context::deterministic: matmul_tile.cuh for any number of rows. A kernel of its own brings the
// rows into the operands of matmul_tile.cuh; where the op before left them there (operands.cuh),
// none.
#pragma once

#include <span>

#include "kernels/cuda/weight.h"

namespace vitrine::cuda {

// Where the rows come from. With `norm` (K) they are x / sqrt(mean(x^2) + eps) * norm.
struct MatmulInput {
  const float* x = nullptr;  // (T,K)
  std::int64_t T = 0;
  const float* norm = nullptr;
  float eps = 0;
};

// out = x * w^T + bias + residual.
struct MatmulOutput {
  float* out = nullptr;  // (T,N)
  const CudaWeight* w = nullptr;
  const float* bias = nullptr;      // (N) or null
  const float* residual = nullptr;  // (T,N) or null; may be `out`
};

inline constexpr int kMaxOutputs = 8;
// Up to kMaxOutputs weights over the same rows, such as q, k and v; those of one format in one
// launch, and of one row those of two formats that models mix (matmul_pair.cu).
void matmul_group(Context& c, std::span<const MatmulOutput> outputs, const MatmulInput& in);
// out = activation(x * gate^T) * (x * up^T), of weights of one format.
void matmul_glu(Context& c, float* out, const MatmulInput& in, const CudaWeight& gate,
                const CudaWeight& up, Activation activation);

inline void matmul(Context& c, float* out, const float* x, std::int64_t T, const CudaWeight& w,
                   const float* bias) {
  MatmulOutput output{out, &w, bias, nullptr};
  matmul_group(c, {&output, 1}, {x, T, nullptr, 0});
}

// Bytes of Context::workspace that every product fits in. More rows than fit are done in turns.
inline constexpr std::int64_t kMatmulWorkspaceBytes = std::int64_t{256} << 20;
// Bytes at Context::operands: 64 rows of up to 32,768 columns.
inline constexpr std::int64_t kOperandBytes = std::int64_t{4} << 20;
// Counters at Context::tickets, zero between kernels.
inline constexpr int kTickets = 65536;

}  // namespace vitrine::cuda
