// The KV cache and attention over its pages. K and V are alike (CudaBackend::check_kv): where the
// kernels speak of a head's width and type, they take K's. A page is [K, V][kv head][position][D].
#pragma once

#include "kernels/backend.h"
#include "kernels/cuda/context.h"

namespace vitrine::cuda {

inline constexpr int kMaxHeadDim = 512;

void store_kv(Context& c, const float* k, const float* v, std::int64_t T, const KvCache& cache,
              const std::int32_t* slots);
// Norms the heads of q and k if there are norm weights, rotates them if there is a table, stores k
// and v. Changes q in place, but not k.
struct RopeStore {
  float* q;  // (T,H,D)
  const float *k, *v;
  std::int64_t T, H;
  const float *q_norm = nullptr, *k_norm = nullptr;
  float eps = 0;
  const float* table = nullptr;
  std::int64_t half = 0;  // R/2
};
void rope_store_kv(Context& c, const RopeStore& r, const KvCache& cache, const std::int32_t* slots);
void attention(Context& c, float* out, const float* q, std::int64_t T, std::int64_t H,
               const KvCache& cache, const KvIndex& index, const AttentionParams& params);

}  // namespace vitrine::cuda
