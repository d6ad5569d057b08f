// The kernels of the smaller ops: plain pointers to device memory, dimensions as in kernels/ops.h. They
// queue on the context's stream and return.
#pragma once

#include "kernels/backend.h"
#include "kernels/cuda/context.h"

namespace vitrine::cuda {

// embed.cu. `rows`: the file's rows of `cols` weights of type `dtype`, one below the other.
void embed(const Context& c, float* out, const std::byte* rows, DType dtype, std::int64_t cols,
           const std::int32_t* ids, std::int64_t T, float scale);

// norm.cu. `rows`: those of x to take; null: the first T.
void rms_norm(const Context& c, float* out, const float* x, const std::int32_t* rows,
              const float* w, std::int64_t T, std::int64_t E, float eps);
void add_rms_norm(const Context& c, float* out, float* residual, const float* delta, const float* w,
                  std::int64_t T, std::int64_t E, float eps);
void layer_norm(const Context& c, float* out, const float* x, const float* w, const float* b,
                std::int64_t T, std::int64_t E, float eps);

// rope.cu
void rope_table(const Context& c, float* table, const std::int32_t* positions,
                const float* inv_freq, std::int64_t T, std::int64_t half, float scale);
void rope(const Context& c, float* x, const float* table, std::int64_t T, std::int64_t H,
          std::int64_t D, std::int64_t half);

// elementwise.cu
void add(const Context& c, float* out, const float* a, const float* b, std::int64_t n);
void activate(const Context& c, float* x, std::int64_t n, Activation activation);
void glu(const Context& c, float* out, const float* gate, const float* up, std::int64_t n,
         Activation activation);
void softcap(const Context& c, float* x, std::int64_t n, float cap);
void gather_rows(const Context& c, float* out, const float* x, const std::int32_t* rows,
                 std::int64_t M, std::int64_t E);

// draw.cu
void draw(const Context& c, DrawnRow* drawn, std::int32_t* last, const DrawRow* rows,
          const float* logits, std::int64_t M, std::int64_t V, bool greedy);

// peak.cu
Peak measure_peak(const Context& c);

}  // namespace vitrine::cuda
