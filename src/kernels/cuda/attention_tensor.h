// Attention on the tensor cores, over pages of f16 or bf16.
#pragma once

#include "kernels/backend.h"
#include "kernels/cuda/context.h"

namespace vitrine::cuda {

// As Ops::attention; pages are [K, V][kv head][position][D]. False, with nothing launched,
// where it has no kernel: f32 pages, heads wider than 256 or not a multiple of 8. Sequences of few
// rows are split by positions over the multiprocessors. With Context::deterministic nothing is
// split and all rows take the same kernel, so that a row's result does not depend on the rest of
// the batch.
bool tensor_attention(Context& c, float* out, const float* q, std::int64_t T, std::int64_t H,
                      const KvCache& cache, const KvIndex& index, const AttentionParams& params);

}  // namespace vitrine::cuda
