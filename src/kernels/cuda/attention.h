// The KV cache and attention over its pages.
#pragma once

#include "kernels/backend.h"
#include "kernels/cuda/context.h"

namespace vitrine::cuda {

std::int64_t kv_page_bytes(const KvShape& shape);
void store_kv(Context& c, const float* k, const float* v, std::int64_t T, const KvCache& cache,
              const std::int32_t* slots);
void attention(Context& c, float* out, const float* q, std::int64_t T, std::int64_t H,
               const KvCache& cache, const KvIndex& index, const AttentionParams& params);

}  // namespace vitrine::cuda
