// Attention of steps in which every sequence has one token.
#pragma once

#include "kernels/cuda/attention.h"

namespace vitrine::cuda {

// rope_store_kv and attention in one kernel; r.q stays as it is. False, with nothing done, where
// heads, pages or the number of sequences do not suit it.
bool lone_attention(Context& c, float* out, const RopeStore& r, const KvCache& cache,
                    const KvIndex& index, const AttentionParams& params);

}  // namespace vitrine::cuda
