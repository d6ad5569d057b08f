// The functions behind a KernelTable, in the namespace of their instruction set.
#pragma once

#include "kernels/cpu/kernels.h"

namespace vitrine::cpu::VT_ISA {

void matmul_panel(const PanelArgs& args);
void matmul_block(const float* w, const float* x, std::int64_t ldx, int M, int kb, float* acc,
                  bool first);
void matmul_bytes(const BytesArgs& args);
void quantize_bytes(bool quad_order, const float* x, std::int64_t steps, std::int64_t m, int M,
                    const ByteRows& out);
void rms_norm(float* out, const float* x, const float* w, std::int64_t n, float eps);
void layer_norm(float* out, const float* x, const float* w, const float* b, std::int64_t n,
                float eps);
void rope(float* head, const float* table, std::int64_t half);
void add(float* out, const float* a, const float* b, std::int64_t n);
void activate(float* out, const float* x, std::int64_t n, Act act);
void glu(float* out, const float* gate, const float* up, std::int64_t n, Act act);
void softcap(float* x, std::int64_t n, float cap);
void attention(const AttentionArgs& args);
void store_kv(const float* x, std::int64_t n, std::byte* to, std::int64_t stride, KvType type);

double fma_flops(std::int64_t rounds, float* sink);
double byte_ops(std::int64_t rounds, float* sink);
void read_all(const float* data, std::int64_t n, float* sink);

}  // namespace vitrine::cpu::VT_ISA
