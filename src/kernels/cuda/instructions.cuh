// The instructions that products and attention are made of, and 16-bit numbers in pairs.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/launch.cuh"

namespace vitrine::cuda {

__device__ inline void copy_async16(void* shared, const void* global) {
  auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(to), "l"(global)
               : "memory");
}
__device__ inline void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ inline void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// c += a * b in f32; f16 or bf16 operands.
template <bool kHalf>
__device__ inline void mma(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                           std::uint32_t b1) {
  if constexpr (kHalf)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// c += a * b in integers: levels times signed bytes, 32 columns.
__device__ inline void mma_bytes(int (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                 std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two floats as f16 or bf16, the first in the lower half.
template <bool kHalf>
__device__ inline std::uint32_t pack2(float x, float y) {
  if constexpr (kHalf) {
    __half2 h = __floats2half2_rn(x, y);
    return *reinterpret_cast<std::uint32_t*>(&h);
  } else {
    __nv_bfloat162 h = __floats2bfloat162_rn(x, y);
    return *reinterpret_cast<std::uint32_t*>(&h);
  }
}
template <bool kHalf>
__device__ inline float2 unpack2(std::uint32_t v) {
  if constexpr (kHalf) return __half22float2(*reinterpret_cast<__half2*>(&v));
  return __bfloat1622float2(*reinterpret_cast<__nv_bfloat162*>(&v));
}

__device__ inline std::uint32_t add_half2(std::uint32_t v, std::uint32_t w) {
  __half2 h = __hadd2(*reinterpret_cast<__half2*>(&v), *reinterpret_cast<__half2*>(&w));
  return *reinterpret_cast<std::uint32_t*>(&h);
}

// Bits of v, moved left by `shift` (right when negative), under `mask`.
__device__ inline std::uint32_t field(std::uint32_t v, int shift, std::uint32_t mask) {
  return (shift >= 0 ? v << shift : v >> -shift) & mask;
}

// (v & kMask) | high in one instruction: left to itself, the compiler makes two of two constants.
template <std::uint32_t kMask>
__device__ inline std::uint32_t and_or(std::uint32_t v, std::uint32_t high) {
  std::uint32_t out;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(out) : "r"(v), "n"(kMask), "r"(high));
  return out;
}

}  // namespace vitrine::cuda
